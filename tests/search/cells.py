"""Cells for searches: a plan's comparisons, and scores by hand."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.decide.objective import Score, Scores
from orchestrator.plan.trial import Trial
from orchestrator.records import FailureClass, Outcome
from tests.plan.planned import experiment, plan

SPEEDUP = "speedup_throughput"
WAYS = [
    {"method": "ngram", "speculation_length": [2, 4, 8], "prompt_lookup_max": [3, 5]},
    {"method": "draft_model", "draft": ["small", "large"], "speculation_length": [1, 2, 4]},
]


def comparisons() -> list[Trial]:
    """2 ways: 3 lengths x 2 windows + 2 drafts x 3 lengths; x 2 batch sizes = 24 cells."""
    planned = plan(experiment(speculation=WAYS, batch_size=[1, 8]))
    return [trial for trial in planned.trials if trial.kind == "comparison"]


def scored(value: float | None, constraints: Mapping[str, float] | None = None) -> Scores:
    objectives = {} if value is None else {SPEEDUP: Score(value, value, 6)}
    return Scores(objectives, constraints or {})


def finished(trial: Trial, wall_s: float = 10.0) -> Outcome:
    return Outcome(trial.id, "finished", wall_s=wall_s)


def failed(trial: Trial) -> Outcome:
    return Outcome(trial.id, "failed", FailureClass.START_FAILED, "planted")
