"""What acceptance would be enough, and whether the speed measured is the speed to be expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.analyse.step_regression import observed_step_s
from orchestrator.measure.acceptance import counter_difference
from orchestrator.measure.stages import StageTimes, stage_sums, stage_times, step_means
from orchestrator.records import BlockRecord

DISAGREEMENT = 0.10
"""Measured and predicted speedup further apart than this are called out."""
COMMON_STEPS_MIN = 0.2
"""AL* compares steps of one kind (batch, context); a fifth of the speculative ones need such."""


@dataclass(frozen=True, slots=True)
class BreakEvenStep:
    """One trial's step, taken apart, in both arms; None where it cannot be known, with `why`."""

    baseline: StageTimes | None
    speculative: StageTimes | None
    break_even_acceptance_length: float | None
    """AL*: how many baseline steps a speculative step takes, at the same batch and context."""
    tokens_per_step: float | None
    """Tokens a request gets per decode step, steps without a proposal included."""
    predicted_speedup: float | None
    """tokens_per_step / AL*: the speedup of TPOT if decode steps were all there is."""
    why: str | None = None


NOT_TIMED = BreakEvenStep(None, None, None, None, None, "no block was measured")


def break_even_step(
    baseline: Sequence[BlockRecord], speculative: Sequence[BlockRecord], *, speculates: bool = True
) -> BreakEvenStep:
    """From the valid blocks of both arms of one trial; a control's arms both do not speculate.

    Formula:
        AL* = sum over kinds k of w_k * step_s(speculative, k) / step_s(baseline, k), with w_k the
              share of the speculative steps of kind k = (requests, context), if both have it
        tokens_per_step = 1 + accepted_tokens / sum of requests x steps
        predicted_speedup = tokens_per_step / AL*
    Source: METRICS of speculative serving: speedup of a step = AL x T_baseline / T_speculative
        (MagicDec, 2408.11049; SmartSpec, 2406.14066).
    Undefined: None when an arm has no stage sums (AL* is then from what clients see, a second way:
        `step_regression.observed_step_s`), or fewer than a fifth of the speculative steps
        have a baseline step of their kind.
    """
    sums = {"baseline": stage_sums(baseline), "speculative": stage_sums(speculative)}
    ours, theirs = sums["speculative"], sums["baseline"]
    if ours is None or theirs is None:
        missing = " and ".join(arm for arm, found in sums.items() if found is None)
        why = f"the {missing} engine does not say what its steps spend their time on"
        needed = _observed(baseline, speculative, speculates=speculates)
        return BreakEvenStep(None, None, needed, None, None, why)
    times = stage_times(theirs, speculative=False), stage_times(ours, speculative=speculates)
    tokens = _tokens_per_step(speculative, times[1]) if speculates else 1.0
    spent, base = step_means(ours), step_means(theirs)
    common = {kind: steps for kind, (_, steps) in spent.items() if kind in base}
    every = math.fsum(steps for _, steps in spent.values())
    weight = math.fsum(common.values())
    if every == 0 or weight < COMMON_STEPS_MIN * every:
        why = (
            f"{weight:g} of {every:g} speculative decode steps have a baseline step with as many "
            f"requests and as long a context; {COMMON_STEPS_MIN:.0%} must"
        )
        return BreakEvenStep(*times, None, tokens, None, why)
    needed = (
        math.fsum(steps * spent[kind][0] / base[kind][0] for kind, steps in common.items()) / weight
    )
    return BreakEvenStep(*times, needed, tokens, None if tokens is None else tokens / needed, None)


def _observed(
    baseline: Sequence[BlockRecord], speculative: Sequence[BlockRecord], *, speculates: bool
) -> float | None:
    """AL* from outside: a speculative step over a baseline step, as clients see them."""
    base = observed_step_s(baseline, speculates=False)
    spent = observed_step_s(speculative, speculates=speculates)
    return None if base is None or spent is None or base <= 0 else spent / base


def _tokens_per_step(blocks: Sequence[BlockRecord], times: StageTimes | None) -> float | None:
    accepted = [
        counter_difference(b.counters_before.accepted_tokens, b.counters_after.accepted_tokens)
        for b in blocks
        if b.counters_before is not None and b.counters_after is not None
    ]
    if times is None or not accepted or any(value is None for value in accepted):
        return None
    request_steps = times.requests * times.steps
    return 1 + math.fsum(value for value in accepted if value is not None) / request_steps
