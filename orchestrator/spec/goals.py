"""What the user wants: service objectives, scenarios, a price."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from orchestrator.spec.nearest import nearest
from orchestrator.spec.section import Count, NotNegative, OneOf, Positive, Section, broken

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

SCENARIO_FILES = (".yaml", ".yml")


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


class _ScenarioName(OneOf):
    """A bundled scenario, or a file of one's own (its path ends in .yaml or .yml)."""

    def checked(self, name: str) -> str:
        return name if name.endswith(SCENARIO_FILES) else super().checked(name)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        named = {"type": "string", "enum": list(self.available)}
        return {"anyOf": [named, {"type": "string", "pattern": r"\.ya?ml$"}]}


Scenario = Annotated[str, _ScenarioName(SCENARIOS)]


class Operations(Section):
    """What speculation takes of people: a short questionnaire. Hours are given, never guessed."""

    integration_hours: NotNegative | None = Field(
        default=None, description="once: to choose, train or fetch, test and roll out the draft"
    )
    upkeep_hours_per_month: NotNegative | None = Field(
        default=None, description="to watch acceptance, refresh the draft, follow engine versions"
    )
    incident_hours_per_month: NotNegative | None = Field(
        default=None, description="to debug what would not have happened without it"
    )
    hour_price: Positive | None = Field(default=None, description="of one such hour")
    months: Positive = Field(default=12.0, description="over which the one-time hours are spread")


class Cost(Section):
    """The price of one device for an hour, and what people's work adds."""

    device_hour: Positive
    currency: Annotated[str, Field(strict=True, pattern=r"^[A-Z]{3}$")] = "USD"
    devices: Count | None = Field(
        default=None, description="that one arm occupies; default: what an engine takes, at least 1"
    )
    sensitivity: tuple[Positive, ...] = Field(
        default=(0.5, 1.0, 2.0), description="factors of the price that are worked out as well"
    )
    operations: Operations | None = None
