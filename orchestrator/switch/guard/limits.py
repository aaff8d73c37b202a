"""Limits that a single request is held to: late, failed, different or repetitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.switch.guard.baseline import BaselineShares
from orchestrator.switch.guard.settings import GuardSettings, quantile_of
from orchestrator.switch.observation import Observation

ALLOWED_MAX = 0.9


@dataclass(frozen=True, slots=True)
class Bound:
    """At most the share `allowed` of requests may break this."""

    rule: str
    """`errors`, `mismatch`, `repetition`, or the objective's name: `ttft_p99_s`."""
    allowed: float
    field: str
    """Of the observation."""
    above: float | None = None
    """Breaking is to exceed this; None: to have an error, or unequal answers."""
    excused_by_baseline: bool = True


def bounds_of(settings: GuardSettings) -> tuple[Bound, ...]:
    return tuple(_bounds(settings))


def _bounds(settings: GuardSettings) -> Iterator[Bound]:
    for name, bound in settings.slo.items():
        found = quantile_of(name)
        assert found is not None, f"{name} passed the settings' validation"
        field, quantile = found
        # 1 - 0.95 is a hair more than 0.05.
        allowed = min(round(settings.slo_burn * (1 - quantile), 9), ALLOWED_MAX)
        yield Bound(name, allowed, field, above=bound)
    if settings.error_rate_max is not None:
        yield Bound("errors", settings.error_rate_max, "error")
    if settings.mismatch_max is not None:
        yield Bound("mismatch", settings.mismatch_max, "shadow_equal", excused_by_baseline=False)
    if settings.repetition_above is not None:
        yield Bound(
            "repetition", settings.repetitive_max, "repetition", above=settings.repetition_above
        )


def hits_of(bound: Bound, seen: Observation) -> bool | None:
    """Whether a request breaks the bound; None where it says nothing about it."""
    if bound.field == "error":
        return seen.error is not None if seen.is_request else None
    if bound.field == "shadow_equal":
        return None if seen.shadow_equal is None else not seen.shadow_equal
    value: float | None = getattr(seen, bound.field)
    return None if value is None or bound.above is None else value > bound.above


def allowed_of(bound: Bound, baseline: BaselineShares) -> float:
    if not bound.excused_by_baseline:
        return bound.allowed
    return baseline.borne(bound.rule, bound.allowed)
