"""What the guard watches, how surely it must be right, and how it comes back."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from orchestrator.spec.goals import SLO_METRICS, SLO_STATISTICS, Slo
from orchestrator.spec.section import (
    Count,
    Flag,
    Fraction,
    Positive,
    Section,
    Share,
    broken,
    defaults,
)

SLO_WATCHED = ("ttft", "tpot", "e2e")
QUANTILES = {name: int(name[1:]) / 100 for name in SLO_STATISTICS if name.startswith("p")}
AtLeastOne = Annotated[float, Field(strict=True, ge=1)]


class AcceptanceLimits(Section):
    """Accepted draft tokens over proposed ones."""

    floor: Share | None = Field(
        default=None,
        description="below it a token takes longer than without speculation: the decision's "
        "guard.acceptance_rate_min. null = not known, not watched",
    )
    floors: dict[str, Share] = Field(
        default={}, description="by prompt category, where it differs from `floor`"
    )
    drop_to: Fraction | None = Field(
        default=0.75,
        description="a request's acceptance may fall to this share of what has been usual in its "
        "category; null = a drop above the floor is no breach",
    )
    learn_requests: Count = Field(
        default=100, description="of a category, before it is known what is usual there"
    )
    half_life_s: Positive = Field(
        default=86_400.0, description="in which what was usual loses half of its weight"
    )


class CoolDown(Section):
    """How long traffic stays with the baseline after a breach."""

    hold_s: Positive = Field(default=60.0, description="the state `breached` lasts this long")
    first_s: Positive = Field(default=300.0, description="from a first breach to its probe")
    factor: AtLeastOne = Field(
        default=2.0, description="each further breach or failed probe makes it longer by this"
    )
    max_s: Positive = 21_600.0
    calm_s: Positive = Field(
        default=86_400.0, description="so long healthy takes one step of the growth back"
    )

    @model_validator(mode="after")
    def _ordered(self) -> CoolDown:
        if not self.hold_s <= self.first_s <= self.max_s:
            raise broken(
                "hold_s <= first_s <= max_s must hold",
                value=f"hold_s={self.hold_s:g}, first_s={self.first_s:g}, max_s={self.max_s:g}",
                key=("first_s",),
                involves=[("hold_s",), ("max_s",)],
            )
        return self


class Probe(Section):
    """Mirrored traffic, whose answers are thrown away, before callers are sent back."""

    share: Fraction = Field(default=0.1, description="of the traffic that is mirrored meanwhile")
    requests: Count = Field(default=50, description="a probe takes at least so many")
    min_s: Positive = Field(default=60.0, description="and at least so long")
    max_s: Positive = Field(
        default=3_600.0,
        description="a probe that has its requests, but not seen what was broken mended, is put "
        "off after so long",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Probe:
        if self.min_s > self.max_s:
            raise broken(
                "min_s <= max_s must hold",
                value=f"min_s={self.min_s:g}, max_s={self.max_s:g}",
                key=("min_s",),
                involves=[("max_s",)],
            )
        return self


class GuardSettings(Section):
    """`guard:` of a switch's configuration. Every limit has a default; null turns a check off."""

    enabled: Flag = True
    acceptance: AcceptanceLimits = defaults()
    slo: Slo = Field(
        default={},
        description="bounds in seconds, as in an experiment: {ttft_p99_s: 0.5, tpot_p95_s: 0.08}; "
        "ttft, tpot and e2e with p50, p90, p95 or p99",
    )
    slo_burn: AtLeastOne = Field(
        default=3.0,
        description="a breach is a share of requests beyond the bound of more than this many times "
        "what the objective allows (p99: 1 %)",
    )
    slower_than_baseline: AtLeastOne | None = Field(
        default=1.1,
        description="a breach is a speculative request that takes more than this many times as "
        "long as a baseline request of the same moment, more often than not; null = not compared",
    )
    comparable_load: AtLeastOne = Field(
        default=2.0,
        description="latencies are compared only while the speculative arm answers at most this "
        "many times as many requests as the baseline: an arm under more load is slower by that",
    )
    error_rate_max: Fraction | None = Field(
        default=0.02, description="of speculative requests, unless the baseline fails as often"
    )
    mismatch_max: Fraction | None = Field(
        default=0.3,
        description="of mirrored greedy answers that differ between the arms. Greedy answers of "
        "equal engines differ too: take the control's mismatch plus what you bear",
    )
    repetition_above: Fraction | None = Field(
        default=0.5,
        description="an answer is repetitive when more than this share of its word 4-grams "
        "occurred before in it",
    )
    repetitive_max: Fraction = Field(
        default=0.05, description="of answers, unless the baseline is as repetitive"
    )
    false_alarm_days: Positive = Field(
        default=28.0,
        description="mean time between false alarms of all checks together is at least this, in "
        "days with traffic",
    )
    round_s: Positive = Field(default=5.0, description="the guard judges once in this time")
    window_s: Positive = Field(default=300.0, description="of the figures that are shown")
    cool_down: CoolDown = defaults()
    probe: Probe = defaults()

    @field_validator("slo")
    @classmethod
    def _watched(cls, slo: dict[str, float]) -> dict[str, float]:
        for name in slo:
            if quantile_of(name) is None:
                raise broken(
                    f"must be of {', '.join(SLO_WATCHED)} and a quantile to be watched live",
                    value=f"'{name}'",
                    hint=f"one of {', '.join(QUANTILES)}, for example ttft_p99_s",
                    key=(name,),
                )
        return slo


def quantile_of(name: str) -> tuple[str, float] | None:
    """`tpot_p95_s` -> ("tpot_s", 0.95); None where a single request cannot be held to it."""
    found = re.fullmatch(rf"({'|'.join(SLO_METRICS)})_(p\d+)_s", name)
    if found is None or found[1] not in SLO_WATCHED:
        return None
    return f"{found[1]}_s", QUANTILES[found[2]]
