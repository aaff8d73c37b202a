"""Acceptance of draft tokens, from the differences of a server's counters."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.records import CounterSnapshot


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What became of the draft tokens in one window; None where undefined."""

    drafts: float
    draft_tokens: float | None
    accepted_tokens: float | None
    acceptance_rate: float | None
    acceptance_length: float | None
    per_position_acceptance_rate: tuple[float, ...] | None
    """Joint: accepted at position i / drafts. Shape (K,)."""
    conditional_acceptance_rate: tuple[float | None, ...] | None
    """Given that every position before was accepted. Shape (K,)."""


def counter_difference(before: float | None, after: float | None) -> float | None:
    """after - before; None where either is missing or the counter ran backwards (a restart)."""
    if before is None or after is None or after < before:
        return None
    return after - before


def acceptance_between(
    before: CounterSnapshot | None, after: CounterSnapshot | None
) -> Acceptance | None:
    """Acceptance figures of the window between two readings.

    Formula:
        acceptance_rate = accepted_tokens / draft_tokens
        acceptance_length = 1 + accepted_tokens / drafts          (the bonus token counts)
        per_position_acceptance_rate[i] = p_i = accepted at position i / drafts
        conditional_acceptance_rate[i] = p_i / p_(i-1), with p_(-1) = 1
    Unit: tokens, ratios
    Undefined: None when the server has no counter of drafts, or it ran backwards; single figures
        None when their denominator is 0 or their counter is missing.
    """
    if before is None or after is None:
        return None
    drafts = counter_difference(before.drafts, after.drafts)
    if drafts is None:
        return None
    drafted = counter_difference(before.draft_tokens, after.draft_tokens)
    accepted = counter_difference(before.accepted_tokens, after.accepted_tokens)
    joint = _per_position(before, after, drafts)
    return Acceptance(
        drafts=drafts,
        draft_tokens=drafted,
        accepted_tokens=accepted,
        acceptance_rate=accepted / drafted if accepted is not None and drafted else None,
        acceptance_length=1 + accepted / drafts if accepted is not None and drafts else None,
        per_position_acceptance_rate=joint,
        conditional_acceptance_rate=None if joint is None else conditional_rates(joint),
    )


def _per_position(
    before: CounterSnapshot, after: CounterSnapshot, drafts: float
) -> tuple[float, ...] | None:
    first, last = before.accepted_per_position, after.accepted_per_position
    if last is None or drafts == 0:
        return None
    # A position shows up in the counters when it is first accepted: absent before means 0.
    padded = (first or ()) + (0.0,) * (len(last) - len(first or ()))
    counts = [counter_difference(a, b) for a, b in zip(padded, last, strict=False)]
    if len(padded) != len(last) or any(count is None for count in counts):
        return None
    return tuple(count / drafts for count in counts if count is not None)


def conditional_rates(joint: tuple[float, ...]) -> tuple[float | None, ...]:
    """c_i = p_i / p_(i-1), with p_(-1) = 1; None where no draft got as far as position i."""
    reached = (1.0, *joint[:-1])
    return tuple(p / q if q > 0 else None for p, q in zip(joint, reached, strict=True))


def expected_acceptance_length(a: float, speculation_length: int) -> float:
    """Tokens a step when each draft token is accepted with probability `a`, independently.

    Formula: E = (1 - a^(K+1)) / (1 - a) = 1 + a + ... + a^K
    Unit: tokens a step
    Raises: ValueError unless 0 <= a <= 1 and K >= 0.
    Source: Leviathan et al. 2211.17192, eq. 1.
    """
    if not 0 <= a <= 1:
        raise ValueError(f"acceptance probability: `0 <= a <= 1` must hold, but got {a}")
    if speculation_length < 0:
        raise ValueError(f"speculation length: must be >= 0, but got {speculation_length}")
    # Horner's sum: exact at a = 1, and near it, where the closed form cancels.
    total = 1.0
    for _ in range(speculation_length):
        total = 1.0 + a * total
    return total


def implied_acceptance_probability(
    acceptance_length: float, speculation_length: int
) -> float | None:
    """The `a` of the i.i.d. model that gives this acceptance length; found by bisection.

    `1 - 1/AL` is its limit for K -> infinity, and biased for every K that is used.

    Undefined: K = 0, or the length lies outside [1, K + 1] (no `a` gives it).
    """
    if speculation_length < 1 or not 1 <= acceptance_length <= speculation_length + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if expected_acceptance_length(middle, speculation_length) < acceptance_length:
            low = middle
        else:
            high = middle
    return (low + high) / 2
