"""One line of a result table: a cell, its speedup with interval, its acceptance, its verdict."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Decision, Verdict


@dataclass(frozen=True)
class Row:
    """Texts ready to show; `trial_id` leads to the records."""

    trial_id: str
    cell: str
    method: str
    speculation_length: str
    workload: str
    load: str
    temperature: str
    speedup: str
    acceptance_length: str
    pairs: str
    verdict: str
    verdict_alone: str
    """Without the number of further pairs."""
    further_pairs: int | None
    """How many more pairs would decide; None where that is not known or not asked."""
    kind: str


def rows(result: SweepResult) -> list[Row]:
    """Controls first, then comparisons in the plan's order, then the confirmation."""
    return [row(trial, result.decision(trial)) for trial in result.every]


def row(result: TrialResult, decision: Decision) -> Row:
    cell = result.trial.cell
    method = "A/A control" if result.trial.kind == "aa_control" else cell.method
    if cell.draft:
        method += f" ({cell.draft})"
    if result.trial.kind == "confirmation":
        method += ", again"
    length = result.acceptance_length
    valid = len(result.valid_pairs)
    return Row(
        trial_id=result.trial.id,
        cell=cell.label(),
        method=method,
        speculation_length=str(cell.speculation_length or "–"),
        workload=cell.workload.name,
        load=(str(cell.load.concurrency) if cell.load.mode == "closed" else cell.load.label()),
        temperature=f"{cell.sampling.temperature:g}",
        speedup=speedup_text(decision),
        acceptance_length="–" if length is None else f"{length:.2f}",
        pairs=f"{valid}" if valid == len(result.pairs) else f"{valid} of {len(result.pairs)}",
        verdict=verdict_text(result, decision),
        verdict_alone=_outcome_text(result) or str(decision.verdict),
        further_pairs=None if _outcome_text(result) else _further(decision),
        kind=result.trial.kind,
    )


def load_heading(result: SweepResult) -> str:
    """What the load column counts: requests in flight, or whatever each cell says."""
    closed = all(trial.trial.cell.load.mode == "closed" for trial in result.every)
    return "in flight" if closed else "load"


def speedup_text(decision: Decision) -> str:
    """`1.21x [1.05, 1.39]`; `–` where there is none."""
    if decision.speedup is None:
        return "–"
    if decision.low is None or decision.high is None:
        return f"{decision.speedup:.2f}x"
    return f"{decision.speedup:.2f}x [{decision.low:.2f}, {decision.high:.2f}]"


def verdict_text(result: TrialResult, decision: Decision) -> str:
    """The verdict, or how the trial failed; never a verdict without valid pairs."""
    instead = _outcome_text(result)
    if instead is not None:
        return instead
    further = _further(decision)
    return f"{decision.verdict} (+{further} pairs)" if further else str(decision.verdict)


def _outcome_text(result: TrialResult) -> str | None:
    """How the trial ended where that stands in a verdict's place."""
    if result.outcome is None:
        return "not run yet" if not result.pairs else "not finished"
    if result.failed:
        return f"failed: {result.outcome.failure}"
    if result.outcome.status == "stopped":
        return "not run" if not result.pairs else f"stopped: {result.outcome.cause}"
    return None


def _further(decision: Decision) -> int | None:
    return decision.further_pairs if decision.verdict is Verdict.CANNOT_TELL else None
