"""What the user wants: service objectives, scenarios, a price."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from orchestrator.spec.nearest import nearest
from orchestrator.spec.section import OneOf, Positive, Section, broken

SLO_METRICS = ("ttft", "tpot", "itl", "icl", "e2e")
SLO_STATISTICS = ("p50", "p90", "p95", "p99", "mean")
_SLO_NAMES = tuple(f"{m}_{s}_s" for m in SLO_METRICS for s in SLO_STATISTICS)

SCENARIOS = (
    "customer-service",
    "offline-batch",
    "code-assistance",
    "real-time-voice",
    "knowledge-base",
)


def _slo_name(name: str) -> str:
    if name in _SLO_NAMES:
        return name
    milliseconds = re.fullmatch(r"(.+)_ms", name)
    close = nearest(milliseconds[1] + "_s" if milliseconds else name, _SLO_NAMES)
    raise broken(
        f"must be <metric>_<statistic>_s with metric {', '.join(SLO_METRICS)} "
        f"and statistic {', '.join(SLO_STATISTICS)}",
        value=f"'{name}'",
        hint=f"did you mean '{close}' (in seconds)?" if close else None,
    )


Slo = dict[Annotated[str, AfterValidator(_slo_name)], Positive]
"""Bounds in seconds by name: `{ttft_p99_s: 0.5, tpot_p95_s: 0.08}`."""

Scenario = Annotated[str, OneOf(SCENARIOS)]


class Cost(Section):
    """The price of one device for an hour."""

    device_hour: Positive
    currency: Annotated[str, Field(strict=True, pattern=r"^[A-Z]{3}$")] = "USD"
