"""How a cell is measured."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from orchestrator.spec.section import (
    Count,
    Fraction,
    OneOf,
    Positive,
    Section,
    Whole,
    broken,
    defaults,
)

METRICS = ("speedup_throughput", "speedup_tpot", "speedup_e2e", "speedup_ttft")


class Pairs(Section):
    """How many pairs of blocks a trial takes: at least `min`, at most `max`."""

    min: Annotated[int, Field(strict=True, ge=2)] = 6
    max: Annotated[int, Field(strict=True, ge=2)] = 24

    @model_validator(mode="after")
    def _ordered(self) -> Pairs:
        if self.min > self.max:
            raise broken(
                "pairs.min <= pairs.max must hold",
                value=f"min={self.min}, max={self.max}",
                key=("min",),
                involves=[("max",)],
            )
        return self


class RequestTimeouts(Section):
    """Limits per phase, in seconds; `start_s` is for an engine's start."""

    connect_s: Positive = 10.0
    first_token_s: Positive = 120.0
    stall_s: Positive = 60.0
    total_s: Positive = 600.0
    start_s: Positive = 600.0


class Measure(Section):
    warmup_requests: Whole = Field(
        default=1, description="per request in flight, on each arm, before the first pair"
    )
    pairs: Pairs = defaults()
    requests_per_block: Count | None = Field(
        default=None,
        description="closed load: per request in flight (default 1); open: in all (default 32)",
    )
    block_requests_min: Count = Field(
        default=1,
        description="closed load: at least so many requests a block, however few are in flight",
    )
    looks: Annotated[str, OneOf(("every", "once"))] = Field(
        default="every",
        description="every: a trial ends when its verdict is reached; once: when its pairs or its "
        "seconds are spent, which decides more with few pairs",
    )
    confidence: Annotated[float, Field(strict=True, ge=0.5, lt=1)] = 0.95
    margin: Fraction = Field(
        default=0.03, description="speedups within 1 +- margin are no practical difference"
    )
    metric: Annotated[str, OneOf(METRICS)] = Field(
        default="speedup_throughput", description="the metric whose verdict ends a trial"
    )
    trial_seconds: Positive | None = Field(
        default=None,
        description="no further pair after so long in measured blocks, once pairs.min are there",
    )
    timeouts: RequestTimeouts = defaults()
