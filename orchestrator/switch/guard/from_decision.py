"""The limits that a decision carries, as the guard's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.switch.guard.settings import GuardSettings, quantile_of


@dataclass(frozen=True)
class FromDecision:
    """Settings, and the objectives that single requests cannot be held to (means, itl, icl)."""

    settings: GuardSettings
    left_out: tuple[str, ...]


def settings_from(
    guard: Mapping[str, Any], *, given: Mapping[str, Any] | None = None
) -> FromDecision:
    """`guard` of decision.json under `given`: what the operator wrote wins, key by key.

    Raises: KeyError when `guard` is not of a decision of schema 1; pydantic.ValidationError.
    """
    bounds: Mapping[str, float] = guard["latency_max_s"]
    decided: dict[str, Any] = {
        "acceptance": {"floor": guard["acceptance_rate_min"]},
        "slo": {name: bound for name, bound in bounds.items() if quantile_of(name)},
    }
    return FromDecision(
        settings=GuardSettings.model_validate(_over(decided, given or {})),
        left_out=tuple(name for name in bounds if not quantile_of(name)),
    )


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`, sections merged; a mapping of objectives is taken whole."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if key != "slo" and isinstance(value, Mapping) and isinstance(under, Mapping):
            merged[key] = _over(under, value)
        else:
            merged[key] = value
    return merged
