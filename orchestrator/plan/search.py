"""What is going to be searched: the candidates, what is looked for, and when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.plan.axes import matches, point_of
from orchestrator.plan.plan import Estimate, Notice, SearchPlan
from orchestrator.plan.trial import Trial
from orchestrator.spec.experiment import Experiment


def search_plan(
    experiment: Experiment, trials: Sequence[Trial]
) -> tuple[SearchPlan | None, list[Notice]]:
    """The search that the file asks for; None when it is the plain grid.

    A point of `first` that no cell has is an error that names the values there are.
    """
    search = experiment.search
    if not search.steered:
        return None, []
    candidates = [trial for trial in trials if trial.kind == "comparison"]
    points = [point_of(trial) for trial in candidates]
    first: dict[str, None] = {}
    notices: list[Notice] = []
    for index, wanted in enumerate(search.first):
        found = [
            t.id for t, point in zip(candidates, points, strict=True) if matches(point, wanted)
        ]
        first |= dict.fromkeys(found)
        if not found:
            notices.append(_unknown(index, wanted, points))
    return (
        SearchPlan(
            algorithm=search.algorithm,
            scheduler=search.scheduler,
            objectives=experiment.objectives,
            constraints=dict(experiment.slo),
            candidates=len(candidates),
            trials=search.trials,
            minutes=search.minutes,
            device_hours=search.device_hours,
            first=tuple(first),
            preset=search.preset,
        ),
        notices,
    )


def start_over_trial(estimate: Estimate, trials: int, engine_starts: int) -> float:
    """Seconds of an engine start / seconds of a trial at least, as the plan estimates them.

    0 where nothing is started; 1 where trials are estimated to take no time.
    """
    if not trials or not engine_starts:
        return 0.0
    start = estimate.start_s * estimate.pairs_at_once / engine_starts
    trial = (estimate.least_s - estimate.start_s) * estimate.pairs_at_once / trials
    return start / trial if trial > 0 else 1.0


def _unknown(
    index: int, wanted: Mapping[str, Any], points: Sequence[Mapping[str, object]]
) -> Notice:
    values: dict[str, dict[object, None]] = {}
    for point in points:
        for name, value in point.items():
            values.setdefault(name, {})[value] = None
    shown = "; ".join(
        f"{name}: {', '.join(_text(v) for v in values[name])}" if name in values else f"{name}: -"
        for name in wanted
    )
    return Notice(
        "error",
        "first_unknown",
        f"search.first[{index}] {dict(wanted)} is no cell of the plan",
        f"the cells have {shown}" if wanted else "give at least one value",
    )


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
