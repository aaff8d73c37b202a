"""What a search found: the best cell within the service objectives, or the front of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.decide.objective import Scores, scores
from orchestrator.decide.pareto import pareto_front
from orchestrator.decide.trial_result import TrialResult
from orchestrator.spec.search import lower_is_better


@dataclass(frozen=True)
class SearchResult:
    """Trials are named by their id. A trial that failed, or lacks an objective, is not among them.
    One that was stopped is, with the pairs it has, but never chosen: it was not measured to its
    end."""

    algorithm: str
    scheduler: str
    objectives: tuple[str, ...]
    constraints: Mapping[str, float]
    scores: Mapping[str, Scores]
    best: str | None
    """With one objective: the best conservative end among the finished that are feasible."""
    front: tuple[str, ...]
    """With several: the finished and feasible cells that no other beats in all of them."""
    not_proposed: int
    """Comparisons of the plan that were never begun."""
    over: str | None
    """Why it ended before all of them were."""


def search_result(
    manifest: Mapping[str, Any],
    comparisons: Sequence[TrialResult],
    *,
    not_proposed: int,
    record: Mapping[str, Any] | None,
) -> SearchResult | None:
    """None for a sweep that walked its whole grid and looked for nothing else."""
    if not steered(manifest):
        return None
    experiment = manifest["experiment"]
    search = experiment["search"]
    objectives = tuple(search.get("objective") or (experiment["measure"]["metric"],))
    constraints = dict(experiment.get("slo") or {})
    found = {
        result.trial.id: scores(result.pairs, result.trial.protocol, objectives, constraints)
        for result in comparisons
        if not result.failed
    }
    whole = {name: each for name, each in found.items() if len(each.objectives) == len(objectives)}
    finished = {
        result.trial.id
        for result in comparisons
        if result.outcome is not None and result.outcome.status == "finished"
    }
    values = {
        name: [each.objectives[objective].conservative for objective in objectives]
        for name, each in whole.items()
        if each.feasible and name in finished
    }
    lower = [lower_is_better(name) for name in objectives]
    best = None
    if len(objectives) == 1 and values:
        sign = -1.0 if lower[0] else 1.0
        best = max(values, key=lambda name: sign * values[name][0])
    return SearchResult(
        algorithm=search["algorithm"],
        scheduler=search["scheduler"],
        objectives=objectives,
        constraints=constraints,
        scores=whole,
        best=best,
        front=pareto_front(values, lower) if len(objectives) > 1 else (),
        not_proposed=not_proposed,
        over=None if record is None else record.get("over"),
    )


def steered(manifest: Mapping[str, Any]) -> bool:
    """Whether the sweep's file asked for anything but its whole grid (`spec.search.steered`)."""
    search = manifest["experiment"].get("search") or {}
    limits = ("trials", "minutes", "device_hours", "first")
    return (
        search.get("algorithm", "grid") != "grid"
        or search.get("scheduler", "none") != "none"
        or len(search.get("objective") or ()) > 1
        or any(search.get(name) for name in limits)
    )
