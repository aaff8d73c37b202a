"""The axes along which the cells of a plan differ; some belong to one method alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchestrator.plan.trial import Trial

Value = str | float

CONDITIONS = ("workload", "batch_size", "load", "temperature")
"""Axes that every cell has; all the others belong to its way to speculate."""


def point_of(trial: Trial) -> dict[str, Value]:
    """A trial's value on every axis that it has, in a fixed order; numbers stay numbers.

    `draft` is there with a draft only, an option with the methods that were given it only. `load`
    is there where it is not simply the batch size.
    """
    cell, speculation = trial.cell, trial.pair.speculative.speculation
    point: dict[str, Value] = {"method": cell.method}
    if cell.draft is not None:
        point["draft"] = cell.draft
    for name, value in sorted((speculation.options if speculation else {}).items()):
        point[name] = _plain(value)
    point["speculation_length"] = float(cell.speculation_length)
    point["workload"] = cell.workload.name
    point["batch_size"] = float(cell.batch_size)
    load = cell.load
    if load.mode == "closed":
        if load.concurrency is not None and load.concurrency != cell.batch_size:
            point["load"] = float(load.concurrency)
    else:
        point["load"] = load.rate_rps if load.rate_rps is not None else load.time_scale
    point["temperature"] = cell.sampling.temperature
    return point


def _plain(value: Any) -> Value:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number else value if isinstance(value, str) else json.dumps(value)


def matches(point: Mapping[str, Value], wanted: Mapping[str, Any]) -> bool:
    """Whether a point has all the values of `wanted` (a partial point, as the file gives it)."""
    return all(name in point and point[name] == _plain(value) for name, value in wanted.items())


@dataclass(frozen=True)
class Space:
    """The finite set of cells that may be measured. Shape of `points`: one per trial, in order."""

    points: tuple[Mapping[str, Value], ...]

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Space:
        return cls(tuple(point_of(trial) for trial in trials))

    @cached_property
    def axes(self) -> Mapping[str, tuple[Value, ...]]:
        """Every axis with its distinct values: numbers ascending, names as they first occur."""
        found: dict[str, dict[Value, None]] = {}
        for point in self.points:
            for name, value in point.items():
                found.setdefault(name, {})[value] = None
        return {name: ordered(list(values)) for name, values in found.items()}

    @cached_property
    def _rank(self) -> Mapping[str, Mapping[Value, float]]:
        """Where on its axis a value stands: 0 the lowest, 1 the highest. Numeric axes alone."""
        return {
            name: {value: index / max(1, len(values) - 1) for index, value in enumerate(values)}
            for name, values in self.axes.items()
            if all(isinstance(value, float) for value in values)
        }

    def distance(self, a: int, b: int) -> float:
        """How unlike two cells are.

        Formula: sum over the axes that either has: 1 where one lacks it or a name differs, the
        difference of ranks (0 to 1) where numbers do. 0 for the same cell.
        """
        first, second = self.points[a], self.points[b]
        total = 0.0
        for name in first.keys() | second.keys():
            x, y = first.get(name), second.get(name)
            if x == y:
                continue
            rank = self._rank.get(name)
            if rank is None or x is None or y is None:
                total += 1.0
            else:
                total += abs(rank[x] - rank[y])
        return total

    def neighbours(self, index: int) -> tuple[int, ...]:
        """The cells one step away, in order: on one axis the next number down and up, or another
        name; and of every other method the cell under the same conditions that is most alike."""
        here = self.points[index]
        nearest: dict[tuple[str, Value], tuple[float, int]] = {}
        for other, point in enumerate(self.points):
            differing = [n for n in here.keys() | point.keys() if here.get(n) != point.get(n)]
            direction = self._direction(here, point, differing)
            if direction is not None:
                found = (self.distance(index, other), other)
                nearest[direction] = min(found, nearest.get(direction, found))
        return tuple(sorted(cell for _, cell in nearest.values()))

    @staticmethod
    def _direction(
        here: Mapping[str, Value], there: Mapping[str, Value], differing: Sequence[str]
    ) -> tuple[str, Value] | None:
        """Which way one has to go; None: it is no single step."""
        if "method" in differing:
            same = not any(name in CONDITIONS for name in differing)
            return ("method", there["method"]) if same else None
        if len(differing) != 1:
            return None
        name = differing[0]
        was, becomes = here.get(name), there.get(name)
        if isinstance(was, float) and isinstance(becomes, float):
            return name, "up" if becomes > was else "down"
        return name, str(becomes)


def ordered(values: Sequence[Value]) -> tuple[Value, ...]:
    """Distinct values: numbers ascending; names, or a mixture, in the order given."""
    distinct = list(dict.fromkeys(values))
    numbers = [value for value in distinct if isinstance(value, float)]
    return tuple(sorted(numbers)) if len(numbers) == len(distinct) else tuple(distinct)
