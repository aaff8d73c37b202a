"""Limits for whoever watches the deployment: beyond them the measured result no longer holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.decide.conditions import level_of
from orchestrator.decide.ladders import ladders
from orchestrator.decide.needed_acceptance import needed_acceptance
from orchestrator.decide.standing import CellAt, Standing, over_load
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult

LATENCIES = ("ttft_p95_s", "tpot_p95_s")
"""Watched where the experiment gave no objectives of its own."""


@dataclass(frozen=True)
class Guard:
    """Fall back to the baseline when one of these is broken; None = no limit is known."""

    acceptance_length_min: float | None
    """Of the engine's counters, 1 + accepted / drafts: below it the arm is slower per token than
    the baseline, at the load and the share of drafting steps that were measured."""
    acceptance_rate_min: float | None
    """The same as accepted / draft tokens."""
    latency_max_s: Mapping[str, float]
    """The objectives; without any, the baseline's own tail at this load plus the margin."""
    latency_from: str
    """`slo` or `baseline`."""
    load_max: float | None
    """Highest load to run it at: the lower end of the switch-off load, else the highest at which it
    is called faster, from the chosen cell up without a gap."""
    load_unit: str
    """`in_flight` or `rps`."""


def guard_of(result: SweepResult, trial: TrialResult) -> Guard:
    """The limits for the deployment that `trial` measured."""
    length, rate = acceptance_floor(trial)
    slo = {
        name: float(bound)
        for name, bound in (result.manifest["experiment"].get("slo") or {}).items()
    }
    margin = trial.trial.protocol.margin
    baseline = trial.figures["baseline"]
    own = {name: baseline[name] * (1 + margin) for name in LATENCIES if name in baseline}
    return Guard(
        acceptance_length_min=length,
        acceptance_rate_min=rate,
        latency_max_s=slo or own,
        latency_from="slo" if slo else "baseline",
        load_max=_load_max(result, trial),
        load_unit="in_flight" if trial.trial.cell.load.mode == "closed" else "rps",
    )


def acceptance_floor(trial: TrialResult) -> tuple[float | None, float | None]:
    """(acceptance length, acceptance rate) at which the time per token would equal the baseline's.

    Formula: with A* the break-even tokens per step, D = output tokens - requests and the measured
        drafts d and draft tokens p: accepted* = D (1 - 1/A*); length 1 + accepted*/d, rate
        accepted*/p. At A* <= 1 nothing need be accepted: length 1, rate 0.
    Undefined: as `needed_acceptance`; nothing drafted.
    """
    needed = needed_acceptance(trial)
    figures = trial.figures["speculative"]
    drafts, drafted = figures.get("drafts"), figures.get("draft_tokens")
    if needed is None or not drafts or not drafted:
        return None, None
    decoded = figures["output_tokens"] - figures["requests_completed"]
    accepted = max(0.0, decoded * (1 - 1 / needed.break_even))
    return 1 + accepted / drafts, min(1.0, accepted / drafted)


def _load_max(result: SweepResult, trial: TrialResult) -> float | None:
    """Never above what was measured; where it is not called faster only below a crossing."""
    own = level_of(trial.trial.cell.load)
    if own is None:
        return None
    cells = next((group for group in over_load(result) if _holds(group, trial)), ())
    highest = own
    for cell in cells:
        if cell.level is not None and cell.level > own:
            if cell.standing is not Standing.FASTER:
                break
            highest = cell.level
    switched = [
        crossing.low
        for ladder in ladders(result.trials)
        if any(rung is trial for rung in ladder.trials)
        for crossing in ladder.break_even.crossings
        if crossing.direction == "falling" and crossing.between[0] == highest
    ]
    return max([highest, *switched])


def _holds(cells: Sequence[CellAt], trial: TrialResult) -> bool:
    return any(cell.result is trial for cell in cells)


def guard_as_plain(guard: Guard) -> dict[str, Any]:
    return {
        "acceptance_length_min": guard.acceptance_length_min,
        "acceptance_rate_min": guard.acceptance_rate_min,
        "latency_max_s": dict(guard.latency_max_s),
        "latency_from": guard.latency_from,
        "load_max": guard.load_max,
        "load_unit": guard.load_unit,
    }
