"""A plot as data: what the page's script draws, and the same as a table for who cannot see it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.plan.trial import Trial
from orchestrator.report.language import Words

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Panel:
    """One small plot. `kind` chooses how it is drawn (`assets/charts.js`)."""

    kind: str
    title: str
    summary: str
    """What it shows, in words: the plot's name for a screen reader."""
    columns: tuple[tuple[str, str], ...]
    """(name of a value in the points, heading): the plot as a table."""
    points: Sequence[Point]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Axis labels, series, reference lines."""

    def as_plain(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "title": self.title,
            "summary": self.summary,
            "columns": [list(column) for column in self.columns],
            "points": [plain(point) for point in self.points],
            **plain(self.options),
        }


@dataclass(frozen=True)
class Figure:
    """Panels that belong together, with what a reader should see in them."""

    id: str
    heading: str
    text: str
    panels: tuple[Panel, ...]
    absent: str | None = None
    """Why there is nothing to draw; None where there is."""
    switchable: bool = False
    """Whether the reader may choose which speedup is drawn."""


def figure_of(
    id: str,
    name: str,
    panels: Iterable[Panel],
    words: Words,
    *,
    absent: str,
    text: str | None = None,
    switchable: bool = False,
) -> Figure:
    """The figure whose heading and text the catalogue calls `plot.NAME` and `plot.NAME_text`.

    `absent`: why there is nothing to draw, where there are no panels.
    """
    drawn = tuple(panels)
    return Figure(
        id,
        words(f"plot.{name}"),
        words(f"plot.{name}_text") if text is None else text,
        drawn,
        absent=None if drawn else absent,
        switchable=switchable,
    )


def columns_of(words: Words, *names: str) -> tuple[tuple[str, str], ...]:
    """Headings of values in a panel's points."""
    return tuple((name, words(f"column.{name}")) for name in names)


def plain(value: Any) -> Any:
    """For JSON: numbers of five digits, what is not finite as null."""
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def deployment_text(trial: Trial, words: Words) -> str:
    """The speculative deployment of a trial: `ngram K=4`; the control by its name."""
    if trial.kind == "aa_control":
        return words("cell.control")
    draft = f"({trial.cell.draft})" if trial.cell.draft else ""
    return f"{trial.cell.method}{draft} K={trial.cell.speculation_length}"


def method_of(trial: Trial) -> str:
    """Method and draft, without the length."""
    return f"{trial.cell.method} ({trial.cell.draft})" if trial.cell.draft else trial.cell.method


@dataclass(frozen=True)
class Place:
    """What a plot holds fixed: a workload at a temperature, and perhaps one method."""

    workload: str
    temperature: float
    method: str | None

    def title(self) -> str:
        parts = [self.method] if self.method else []
        return " · ".join([*parts, self.workload, f"T={self.temperature:g}"])


_TOGETHER = 6
"""So many lines in one plot can still be told apart."""


def places(
    result: SweepResult, *, always_by_method: bool = False
) -> dict[Place, list[TrialResult]]:
    """The comparisons in groups that one plot can hold, in the plan's order."""
    deployments = {trial.trial.pair.speculative.key for trial in result.trials}
    by_method = always_by_method or len(deployments) > _TOGETHER
    groups: dict[Place, list[TrialResult]] = {}
    for trial in result.trials:
        cell = trial.trial.cell
        method = method_of(trial.trial) if by_method else None
        place = Place(cell.workload.name, cell.sampling.temperature, method)
        groups.setdefault(place, []).append(trial)
    return groups


def slots(result: SweepResult, words: Words) -> dict[str, int]:
    """A colour and a symbol for every deployment, the same in all plots.

    Where every method has plots of its own, its deployments begin with the first colour again.
    """
    names: dict[str, dict[str, None]] = {}
    for trial in result.trials:
        own = names.setdefault(method_of(trial.trial), {})
        own[deployment_text(trial.trial, words)] = None
    if sum(map(len, names.values())) > _TOGETHER:
        return {name: index for own in names.values() for index, name in enumerate(own)}
    return {name: index for index, name in enumerate(n for own in names.values() for n in own)}


def series_of(trials: Sequence[TrialResult], colours: Mapping[str, int], words: Words) -> list[Any]:
    """[name, colour] of every deployment among `trials`."""
    names = dict.fromkeys(deployment_text(trial.trial, words) for trial in trials)
    return [[name, colours[name]] for name in names]
