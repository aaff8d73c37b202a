"""Which rungs need not be run: what was already too much stays too much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from orchestrator.plan.ladder import ladder_key, load_level
from orchestrator.plan.trial import Trial
from orchestrator.records import ARMS, Arm, FailureClass, Outcome

__all__ = ["RungOutcome", "ladder_key", "skip_reason", "skipped"]

CAPACITY_FAILURES = frozenset(
    {FailureClass.OUT_OF_MEMORY, FailureClass.UNRESPONSIVE, FailureClass.ALL_REQUESTS_FAILED}
)
"""A crash is not among them: an accident at a low rung must not hide the rungs above it."""


@dataclass(frozen=True)
class RungOutcome:
    """How a rung ended, and which arms its load saturated (with why)."""

    trial: Trial
    outcome: Outcome
    saturated: Mapping[Arm, str] = field(default_factory=dict)


def skip_reason(trial: Trial, rungs: Iterable[RungOutcome]) -> str | None:
    """Why `trial` is not worth running after what its ladder's lower rungs showed; None: run it.

    Rule: a lower rung failed for want of capacity; or every arm was saturated on some lower rung.
    An arm that still keeps up has its knee ahead, so one saturated arm skips nothing. Rungs of
    other ladders, equal or higher rungs may be among `rungs`; they do not count.
    """
    key, level = ladder_key(trial), load_level(trial.cell.load)
    lower = sorted(
        (
            rung
            for rung in rungs
            if load_level(rung.trial.cell.load) < level and ladder_key(rung.trial) == key
        ),
        key=lambda rung: load_level(rung.trial.cell.load),
    )
    for rung in lower:
        if rung.outcome.status == "failed" and rung.outcome.failure in CAPACITY_FAILURES:
            return (
                f"not run: the rung at {rung.trial.cell.load.label()} failed "
                f"({rung.outcome.failure}: {rung.outcome.cause or 'no cause given'})"
            )
    first: dict[Arm, str] = {}
    for rung in lower:
        for arm, why in rung.saturated.items():
            first.setdefault(arm, f"{arm} at {rung.trial.cell.load.label()} ({why})")
    if all(arm in first for arm in ARMS):
        return f"not run: both arms were saturated below: {'; '.join(first[arm] for arm in ARMS)}"
    return None


def skipped(trial: Trial, reason: str) -> Outcome:
    """The outcome of a rung that was not run."""
    return Outcome(trial_id=trial.id, status="stopped", cause=reason)
