"""One line of a result table: a cell, its speedup with interval, its acceptance, its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Decision, Verdict
from orchestrator.plan.trial import LoadPoint, Trial
from orchestrator.report.language import Words

ENGLISH = Words("en")
WITHHELD = "*"
"""Behind a verdict that the interval beside it seems to contradict; see `withheld_sentence`."""


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
    withheld: bool
    """Faster or slower by its own interval, but not among all cells: marked with `WITHHELD`."""
    kind: str


def rows(result: SweepResult, words: Words = ENGLISH) -> list[Row]:
    """Controls first, then comparisons in the plan's order, then the confirmation."""
    return [row(trial, result.decision(trial), words) for trial in result.every]


def row(result: TrialResult, decision: Decision, words: Words = ENGLISH) -> Row:
    cell = result.trial.cell
    length = result.acceptance_length
    valid, pairs = len(result.valid_pairs), len(result.pairs)
    closed = cell.load.mode == "closed"
    return Row(
        trial_id=result.trial.id,
        cell=trial_label(result.trial, words),
        method=method_text(result.trial, words),
        speculation_length=str(cell.speculation_length or "–"),
        workload=cell.workload.name,
        load=str(cell.load.concurrency) if closed else load_text(cell.load, words),
        temperature=f"{cell.sampling.temperature:g}",
        speedup=speedup_text(decision),
        acceptance_length="–" if length is None else f"{length:.2f}",
        pairs=f"{valid}" if valid == pairs else words("cell.pairs_of", valid=valid, all=pairs),
        verdict=verdict_text(result, decision, words),
        verdict_alone=_verdict_alone(result, decision, words),
        further_pairs=_further(result, decision),
        withheld=_withheld(result, decision),
        kind=result.trial.kind,
    )


def method_text(trial: Trial, words: Words = ENGLISH) -> str:
    """`eagle (head)`, `A/A control`, `ngram, again`."""
    method = words("cell.control") if trial.kind == "aa_control" else trial.cell.method
    if trial.cell.draft:
        method += f" ({trial.cell.draft})"
    return words("cell.again", method=method) if trial.kind == "confirmation" else method


def load_text(load: LoadPoint, words: Words = ENGLISH) -> str:
    if load.mode == "closed":
        return words("cell.in_flight", n=load.concurrency or 0)
    if load.rate_rps is None:
        return words("cell.trace", scale=f"{load.time_scale:g}")
    return words("cell.rps", n=f"{load.rate_rps:g}")


def trial_label(trial: Trial, words: Words = ENGLISH) -> str:
    """`ngram K=4 · chat · batch 8 · T=0`, with the kind of trial where it is no comparison."""
    cell = trial.cell
    draft = f"({cell.draft})" if cell.draft else ""
    parts = [f"{cell.method}{draft} K={cell.speculation_length}", cell.workload.name]
    if trial.kind == "aa_control":
        parts[0] = words("cell.control")
    elif trial.kind == "confirmation":
        parts.insert(0, words("cell.confirmation_short"))
    parts.append(words("cell.batch", size=cell.batch_size))
    if cell.load.mode == "open" or cell.load.concurrency != cell.batch_size:
        parts.append(load_text(cell.load, words))
    parts.append(f"T={cell.sampling.temperature:g}")
    return " · ".join(parts)


def load_heading(result: SweepResult, words: Words = ENGLISH) -> str:
    """What the load column counts: requests in flight, or whatever each cell says."""
    closed = all(trial.trial.cell.load.mode == "closed" for trial in result.every)
    return words("heading.in_flight") if closed else words("heading.load")


def speedup_text(decision: Decision) -> str:
    """`1.21x [1.05, 1.39]`; `–` where there is none."""
    if decision.speedup is None:
        return "–"
    if decision.low is None or decision.high is None:
        return f"{decision.speedup:.2f}x"
    return f"{decision.speedup:.2f}x [{decision.low:.2f}, {decision.high:.2f}]"


def verdict_key(result: TrialResult, decision: Decision) -> str:
    """Key of the verdict's name, or of how the trial failed; no verdict without its trial ended."""
    if result.outcome is None:
        return "verdict.not_finished" if result.pairs else "verdict.not_run_yet"
    if result.failed:
        return "verdict.failed"
    if result.outcome.status == "stopped":
        return "verdict.stopped" if result.pairs else "verdict.not_run"
    return verdict_name(decision.verdict)


def verdict_name(verdict: Verdict) -> str:
    return f"verdict.{verdict.value.replace(' ', '_')}"


def verdict_text(result: TrialResult, decision: Decision, words: Words = ENGLISH) -> str:
    """The verdict, or how the trial failed; never a verdict without valid pairs."""
    further = _further(result, decision)
    if further:
        return words("verdict.cannot_tell_further", pairs=further)
    return _verdict_alone(result, decision, words)


def _withheld(result: TrialResult, decision: Decision) -> bool:
    return decision.alone is not None and verdict_key(result, decision) == "verdict.cannot_tell"


def withheld_sentence(shown: Sequence[Row], words: Words = ENGLISH) -> str:
    """What `WITHHELD` means; nothing where no row bears it."""
    cells = sum(row.kind == "comparison" for row in shown)
    return words("report.withheld", cells=cells) if any(row.withheld for row in shown) else ""


def _further(result: TrialResult, decision: Decision) -> int | None:
    undecided = verdict_key(result, decision) == "verdict.cannot_tell"
    return decision.further_pairs if undecided else None


def _verdict_alone(result: TrialResult, decision: Decision, words: Words) -> str:
    outcome = result.outcome
    return words(
        verdict_key(result, decision),
        failure="" if outcome is None else words.sentence(str(outcome.failure)),
        cause="" if outcome is None else words.sentence(str(outcome.cause)),
    )
