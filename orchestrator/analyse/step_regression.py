"""What a step costs, from outside: a ladder of speculation lengths at one batch size.

A second way to the split, for servers that do not say what their steps spend their time on, and to
hold against what they do say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.measure.acceptance import counter_difference
from orchestrator.records import BlockRecord


@dataclass(frozen=True, slots=True)
class StepCost:
    """Formula: step_s(K) = base_s for K = 0, base_s + fixed_s + K * per_token_s for K > 0."""

    base_s: float
    fixed_s: float
    """What speculating costs per step however short the draft."""
    per_token_s: float
    """What one more draft token costs per step: to draft it and to verify it."""
    residual: float
    """Largest relative distance of a measured step from the line."""

    def break_even_acceptance_length(self, speculation_length: int) -> float:
        """AL*: a speculative step in steps of the baseline."""
        return 1 + (self.fixed_s + speculation_length * self.per_token_s) / self.base_s


def step_cost(steps: Mapping[int, float]) -> StepCost | None:
    """Least squares over K of seconds per step at one batch size; K = 0 is the baseline.

    Undefined: None without K = 0, or with fewer than two lengths above it.
    """
    base = steps.get(0)
    above = sorted(length for length in steps if length > 0)
    if base is None or base <= 0 or len(above) < 2:
        return None
    slope, intercept = np.polyfit(above, [steps[length] - base for length in above], 1)
    line = [base + intercept + slope * length for length in above]
    off = [abs(fitted / steps[length] - 1) for fitted, length in zip(line, above, strict=True)]
    return StepCost(base, float(intercept), float(slope), max(off))


def observed_step_s(blocks: Sequence[BlockRecord], *, speculates: bool) -> float | None:
    """Seconds per decode step as a client sees it: time per token x tokens per step.

    Formula: every request-step brings one token and those accepted, so with D tokens after each
        answer's first chunk and A accepted of drafts, request-steps = D - A and
        step_s = sum of (last chunk - first chunk) / (D - A).
    Undefined: None without completed answers of two tokens, or without the counter of accepted
        tokens where the engine speculates.
    """
    decoding_s, tokens, accepted = 0.0, 0, 0.0
    for block in blocks:
        if speculates:
            gained = _accepted(block)
            if gained is None:
                return None
            accepted += gained
        for request in block.requests:
            times, count = request.chunk_s, request.output_tokens
            if not request.completed or count is None or count < 2 or len(times) < 2:
                continue
            decoding_s += times[-1] - times[0]
            tokens += count - (request.chunk_tokens[0] if request.chunk_tokens else 1)
    steps = tokens - accepted
    return decoding_s / steps if steps >= 1 else None


def _accepted(block: BlockRecord) -> float | None:
    before, after = block.counters_before, block.counters_after
    if before is None or after is None:
        return None
    return counter_difference(before.accepted_tokens, after.accepted_tokens)
