"""The load that is offered: a number in flight, or a rate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from orchestrator.spec.section import Axis, Count, Positive, Section, Text, Whole, broken

REFINE = "at most so many further loads, around the knee and the break-even load"


class ClosedLoad(Section):
    """So many requests in flight, always; the next is sent when one has ended."""

    mode: Literal["closed"] = "closed"
    concurrency: Axis[Count] | None = Field(
        default=None, description="requests in flight; without it sweep.batch_size says so"
    )
    refine: Whole = Field(default=0, description=REFINE)


class OpenLoad(Section):
    """So many requests a second, sent on time whatever the server does."""

    mode: Literal["open"]
    rate_rps: Axis[Positive] | None = Field(
        default=None, description="requests a second; a trace is scaled to it"
    )
    arrivals: Literal["poisson", "constant", "gamma", "trace"] = "poisson"
    burstiness: Positive = Field(
        default=1.0, description="shape of the gamma gaps: 1 is Poisson, below 1 is burstier"
    )
    trace: Text | None = Field(default=None, description="CSV of arrival times")
    time_scale: Positive = Field(
        default=1.0, description="the trace's gaps are multiplied by this; 0.5 is twice the rate"
    )
    refine: Whole = Field(default=0, description=REFINE)

    @model_validator(mode="after")
    def _trace_or_rate(self) -> OpenLoad:
        if self.arrivals == "trace":
            if self.trace is None:
                raise broken(
                    "is required with arrivals: trace", key=("trace",), involves=[("arrivals",)]
                )
            if self.rate_rps is not None and "time_scale" in self.model_fields_set:
                raise broken(
                    "must not be given together with rate_rps: both say how fast the trace runs",
                    value=self.time_scale,
                    key=("time_scale",),
                    involves=[("rate_rps",)],
                )
        elif self.rate_rps is None:
            raise broken(
                "is required with mode: open",
                hint="for example rate_rps: [1, 2, 4]",
                key=("rate_rps",),
                involves=[("arrivals",)],
            )
        return self

    @model_validator(mode="after")
    def _only_where_it_acts(self) -> OpenLoad:
        if self.arrivals != "gamma" and self.burstiness != 1.0:
            raise broken(
                "acts only with arrivals: gamma",
                value=self.burstiness,
                hint=f"arrivals is {self.arrivals}",
                key=("burstiness",),
                involves=[("arrivals",)],
            )
        if self.arrivals != "trace":
            for name in ("trace", "time_scale"):
                if name in self.model_fields_set:
                    raise broken(
                        "acts only with arrivals: trace",
                        value=getattr(self, name),
                        hint=f"arrivals is {self.arrivals}",
                        key=(name,),
                        involves=[("arrivals",)],
                    )
        return self


def _mode_of(load: object) -> str | None:
    return load.get("mode", "closed") if isinstance(load, dict) else getattr(load, "mode", None)


def _mode_known(load: object) -> object:
    mode = _mode_of(load)
    if not isinstance(load, dict) and mode is None:
        raise broken("must be a mapping", value=load, hint="for example {mode: closed}")
    if mode not in ("closed", "open"):
        raise broken("must be one of closed, open", value=f"'{mode}'", key=("mode",))
    return load


Load = Annotated[
    Annotated[ClosedLoad, Tag("closed")] | Annotated[OpenLoad, Tag("open")],
    Discriminator(_mode_of),
    BeforeValidator(_mode_known),
]
