"""The acceptance that was measured, beside the acceptance that would be needed to break even."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.decide.conclusion import Conclusion, Kind, Tone
from orchestrator.decide.conditions import beyond, conditions_of, ids
from orchestrator.decide.message import Message, said
from orchestrator.decide.standing import CellAt, load_said, over_load, subject, trials_of
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult


@dataclass(frozen=True)
class Needed:
    """Tokens a request gains in one decoding step of the speculative arm, and what it must."""

    tokens_per_step: float
    break_even: float
    """Below this the arm is slower per token than the baseline, at this load."""
    low: float | None
    """Interval of `break_even`, from that of `speedup_tpot`; None before the first look."""
    high: float | None

    @property
    def enough(self) -> bool | None:
        """Whether more is accepted than needed; None where the interval holds what was measured."""
        if self.low is None or self.high is None:
            return None
        if self.low <= self.tokens_per_step <= self.high:
            return None
        return self.tokens_per_step > self.high


def needed_acceptance(trial: TrialResult) -> Needed | None:
    """Measured tokens per decoding step, and those at which the time per token would be equal.

    Formula: decoded = output_tokens - requests (the first token comes from the prefill);
        tokens_per_step A = decoded / (decoded - accepted_tokens): each step of a request gives one
        token of the target's and the accepted ones. A step takes A * tpot; a baseline step takes
        the baseline's tpot: break-even A* = A * tpot_speculative / tpot_baseline
        = A / speedup_tpot. Where every step drafts, A is the acceptance length.
    Unit: tokens per step
    Undefined: no counter of accepted tokens, no time per token, or counts that do not fit.
    """
    figures = trial.figures["speculative"]
    accepted, output = figures.get("accepted_tokens"), figures.get("output_tokens")
    requests = figures.get("requests_completed")
    tpot = trial.decisions["speedup_tpot"]
    if accepted is None or output is None or requests is None or tpot.speedup is None:
        return None
    decoded = output - requests
    if decoded <= 0 or accepted >= decoded:
        return None
    tokens_per_step = decoded / (decoded - accepted)
    return Needed(
        tokens_per_step,
        tokens_per_step / tpot.speedup,
        low=None if tpot.high is None else tokens_per_step / tpot.high,
        high=None if tpot.low is None else tokens_per_step / tpot.low,
    )


def acceptances(result: SweepResult) -> Iterator[Conclusion]:
    """One conclusion a deployment, workload and temperature, with every load in it."""
    for cells in over_load(result):
        known = [(c, n) for c in cells if (n := needed_acceptance(c.result)) is not None]
        zero = [c for c in cells if c.result.acceptance_rate == 0]
        if zero:
            yield _nothing_accepted(result, zero)
        if known:
            yield _beside(result, known)
        elif any(c.result.valid_pairs for c in cells) and not zero:
            yield Conclusion(
                kind=Kind.ACCEPTANCE,
                key="acceptance.not_available",
                tone="unknown",
                conditions=conditions_of(result, trials_of(cells)),
                values=subject(cells),
                evidence=ids(trials_of(cells)),
            )


def _nothing_accepted(result: SweepResult, cells: list[CellAt]) -> Conclusion:
    drafted = sum(c.result.figures["speculative"].get("draft_tokens", 0.0) for c in cells)
    return Conclusion(
        kind=Kind.ACCEPTANCE,
        key="acceptance.nothing",
        tone="warning",
        conditions=conditions_of(result, trials_of(cells)),
        values={**subject(cells), "drafted": round(drafted)},
        evidence=ids(trials_of(cells)),
    )


def _beside(result: SweepResult, known: list[tuple[CellAt, Needed]]) -> Conclusion:
    cells = [cell for cell, _ in known]
    enough = {needed.enough for _, needed in known}
    tone: Tone = "neutral"
    if enough == {True}:
        key, tone = "acceptance.enough", "for"
    elif enough == {False}:
        key, tone = "acceptance.too_low", "against"
    elif enough == {None}:
        key, tone = "acceptance.untold", "unknown"
    else:
        key = "acceptance.depends"
    return Conclusion(
        kind=Kind.ACCEPTANCE,
        key=key,
        tone=tone,
        conditions=conditions_of(result, trials_of(cells)),
        values={**subject(cells), "per_load": tuple(_item(c, n) for c, n in known)},
        evidence=ids(trials_of(cells)),
        not_measured=beyond(result, trials_of(cells)),
    )


def _item(cell: CellAt, needed: Needed) -> Message:
    rate = cell.result.acceptance_rate
    return said(
        "acceptance.at_load",
        load=load_said(cell),
        measured=needed.tokens_per_step,
        needed=needed.break_even,
        span=(
            said("value.none")
            if needed.low is None or needed.high is None
            else said("acceptance.span", low=needed.low, high=needed.high)
        ),
        rate=said("acceptance.rate", rate=rate) if rate is not None else said("value.none"),
        by_steps=(
            said("value.none")
            if cell.result.step.break_even_acceptance_length is None
            else said("acceptance.by_steps", needed=cell.result.step.break_even_acceptance_length)
        ),
    )
