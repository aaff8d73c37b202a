"""The candidates as a define-by-run space: a tree whose leaves are the cells.

An axis is asked for only where the cells that are still possible differ on it: so a draft is chosen
only with a method that has drafts, and an option only with the method that takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    IntDistribution,
)

from orchestrator.plan.axes import CONDITIONS, Space, Value, ordered


class Suggests(Protocol):
    """What is used of an Optuna trial."""

    def suggest_int(self, name: str, low: int, high: int) -> int: ...

    def suggest_categorical(self, name: str, choices: tuple[Value, ...]) -> Value: ...


@dataclass(frozen=True)
class CellTree:
    """Maps an Optuna trial to a cell and back."""

    space: Space

    def walk(self, trial: Suggests) -> int:
        """The cell that the trial's answers lead to. Cells that differ on no axis: the first."""
        here = list(range(len(self.space.points)))
        for axis in self._axes:
            options = self._options(axis, here)
            if len(options) < 2:
                continue
            name = self._name(axis, here, options)
            if _numeric(options):
                chosen: Value | None = options[trial.suggest_int(name, 0, len(options) - 1)]
            else:
                chosen = trial.suggest_categorical(name, options)
            here = [index for index in here if self.space.points[index].get(axis) == chosen]
        return here[0]

    def params(self, index: int) -> tuple[dict[str, Value | int], dict[str, BaseDistribution]]:
        """The answers that lead to a cell, and what they were chosen from."""
        recorder = _Recorder(self.space.points[index])
        here = list(range(len(self.space.points)))
        for axis in self._axes:
            options = self._options(axis, here)
            value = self.space.points[index].get(axis)
            if len(options) > 1 and value is not None:
                recorder.note(self._name(axis, here, options), options, value)
            here = [i for i in here if self.space.points[i].get(axis) == value]
        return recorder.params, recorder.distributions

    @cached_property
    def _axes(self) -> tuple[str, ...]:
        """The method first, what belongs to it next, then what every cell has."""
        names = list(self.space.axes)
        own = [name for name in names if name not in ("method", *CONDITIONS)]
        drafts_first = sorted(own, key=lambda name: (name != "draft", names.index(name)))
        return ("method", *drafts_first, *(name for name in CONDITIONS if name in names))

    def _options(self, axis: str, here: list[int]) -> tuple[Value, ...]:
        points = (self.space.points[index] for index in here)
        return ordered([point[axis] for point in points if axis in point])

    def _name(self, axis: str, here: list[int], options: tuple[Value, ...]) -> str:
        """Optuna wants the same choices under the same name: the choices are part of it.

        What belongs to a way to speculate is named after its method, since the best length of one
        method says little of another's.
        """
        values = ",".join(f"{v:g}" if isinstance(v, float) else v for v in options)
        if axis == "method" or axis in CONDITIONS:
            return f"{axis}[{values}]"
        return f"{self.space.points[here[0]]['method']}.{axis}[{values}]"


class _Recorder:
    def __init__(self, point: Mapping[str, Value]) -> None:
        self.point = point
        self.params: dict[str, Value | int] = {}
        self.distributions: dict[str, BaseDistribution] = {}

    def note(self, name: str, options: tuple[Value, ...], value: Value) -> None:
        if _numeric(options):
            self.params[name] = options.index(value)
            self.distributions[name] = IntDistribution(0, len(options) - 1)
        else:
            self.params[name] = value
            self.distributions[name] = CategoricalDistribution(options)


def _numeric(options: tuple[Value, ...]) -> bool:
    """Asked for by rank: 1, 2, 4, 8 are four neighbours, not points on a scale from 1 to 8."""
    return all(isinstance(value, float) for value in options)
