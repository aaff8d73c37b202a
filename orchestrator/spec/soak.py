"""The soak: how long, under which load, and what happens to the engines meanwhile."""

from __future__ import annotations

import itertools
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from orchestrator.spec.section import (
    Axis,
    Count,
    Flag,
    Fraction,
    Name,
    OneOf,
    Positive,
    Section,
    Share,
    Text,
    broken,
    defaults,
)

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def seconds(value: Any) -> Any:
    """`90`, `90s`, `10m`, `1.5h` or `3d` in seconds; what is none of them is left to be refused."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise broken(
                "must be a duration: seconds, or a number with s, m, h or d",
                value=f"'{value}'",
                hint="for example 90s, 10m, 1.5h, 3d",
            )
        return float(found[1]) * _UNITS[found[2]]
    return value


_TEXT = {"type": "string", "pattern": f"^{_DURATION.pattern}$"}
Duration = Annotated[
    Positive,
    BeforeValidator(seconds),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEXT]}),
]
Moment = Annotated[
    float,
    Field(strict=True, ge=0),
    BeforeValidator(seconds),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, _TEXT]}),
]

FAULTS = (
    "worker_stopped",
    "engine_killed",
    "network_slow",
    "network_cut",
    "cpu_hog",
    "memory_pressure",
    "disk_slow",
    "disk_full",
    "clock_jump",
    "disconnects",
)
FaultKind = Annotated[str, OneOf(FAULTS)]


class SoakFault(Section):
    """One thing that goes wrong, in both arms at the same moment."""

    kind: FaultKind
    at: Moment = Field(description="after the soak's begin: seconds, or 10m, 2h")
    lasts: Duration = Field(default=10.0, description="after which it is undone")
    delay_s: Positive = Field(default=0.2, description="network_slow: added to every piece")
    jump_s: float = Field(default=3600.0, strict=True, description="clock_jump: by so much")
    clients: Count = Field(default=2000, description="disconnects: so many leave in mid-stream")
    share: Share = Field(
        default=0.5, description="memory_pressure: of what is available; cpu_hog: of the cores"
    )
    path: Text | None = Field(
        default=None, description="disk_slow, disk_full: a folder on the file system to be filled"
    )

    @model_validator(mode="after")
    def _a_disk_that_may_be_filled(self) -> SoakFault:
        if self.kind == "disk_full" and self.path is None:
            raise broken(
                "is required with kind: disk_full",
                hint="a folder on a file system of its own: it is filled to the last byte",
                key=("path",),
                involves=[("kind",)],
            )
        return self


class Bursts(Section):
    """Load that jumps by a factor and comes back, with profile: bursty."""

    factors: Axis[Annotated[float, Field(strict=True, gt=1)]] = (2.0, 5.0, 10.0)
    lasts: Duration = 30.0
    every: Duration = Field(default=300.0, description="from one burst's begin to the next")


class SoakLoad(Section):
    """What is offered to each arm; requests in flight, or a rate."""

    concurrency: Count | None = Field(default=None, description="requests in flight (default 4)")
    rate_rps: Positive | None = Field(default=None, description="requests a second, Poisson")

    @model_validator(mode="after")
    def _one_of_them(self) -> SoakLoad:
        if self.concurrency is not None and self.rate_rps is not None:
            raise broken(
                "must not be given together with rate_rps",
                value=self.concurrency,
                key=("concurrency",),
                involves=[("rate_rps",)],
            )
        return self


class Soak(Section):
    """Continuous load on both arms side by side (suites: [soak])."""

    duration: Duration = Field(default=600.0, description="seconds, or 90m, 8h, 3d")
    profile: Literal["constant", "diurnal", "bursty"] = "constant"
    load: SoakLoad = defaults()
    mix: dict[Name, Positive] = Field(
        default_factory=dict, description="weight of each workload (default: all alike)"
    )
    temperature: float = Field(default=0.0, strict=True, ge=0)
    period: Duration = Field(default=86400.0, description="diurnal: from peak to peak")
    trough: Fraction = Field(default=0.3, description="diurnal: the lowest load, of the highest")
    bursts: Bursts = defaults()
    window: Duration | None = Field(
        default=None,
        description="figures are taken over so long (default: duration / 240, 5 s to 10 min)",
    )
    checkpoint: Duration = Field(default=60.0, description="a killed soak loses at most so much")
    horizon: Duration = Field(
        default=604800.0, description="a resource that would be used up by then leaks"
    )
    margin: Fraction = Field(default=0.05, description="a change over the soak that matters")
    flush_control: Flag = Field(default=True, description="at the end, caches are emptied …")
    restart_control: Flag = Field(default=True, description="… and then the engines restarted")
    control: Duration | None = Field(
        default=None,
        description="load after each control (default: a twentieth, 1 to 5 minutes)",
    )
    faults: tuple[SoakFault, ...] = ()
    raw_mb: Positive = Field(
        default=64.0, description="of sampled requests kept; the oldest in the middle go first"
    )

    @property
    def window_s(self) -> float:
        return self.window or min(600.0, max(5.0, self.duration / 240))

    @property
    def control_s(self) -> float:
        return self.control or min(300.0, max(60.0, self.duration / 20))

    @model_validator(mode="after")
    def _bursts_only_where_they_act(self) -> Soak:
        if self.profile != "bursty" and "bursts" in self.model_fields_set:
            raise broken(
                "acts only with profile: bursty",
                value=f"profile: {self.profile}",
                key=("bursts",),
                involves=[("profile",)],
            )
        if self.profile == "bursty" and self.bursts.lasts >= self.bursts.every / 2:
            raise broken(
                "must be less than half of bursts.every: the rest is needed to see the recovery",
                value=self.bursts.lasts,
                key=("bursts", "lasts"),
                involves=[("bursts", "every")],
            )
        return self

    @model_validator(mode="after")
    def _faults_lie_within_and_apart(self) -> Soak:
        events = sorted(self.faults, key=lambda fault: fault.at)
        for index, fault in enumerate(self.faults):
            if fault.at + fault.lasts >= self.duration:
                raise broken(
                    "must end before the soak does",
                    value=f"at={fault.at:g} s, lasts={fault.lasts:g} s, soak {self.duration:g} s",
                    key=("faults", index, "at"),
                    involves=[("duration",)],
                )
        for one, following in itertools.pairwise(events):
            if one.at + one.lasts >= following.at:
                raise broken(
                    "must begin after the fault before it has ended",
                    value=f"{following.kind} at {following.at:g} s",
                    key=("faults", self.faults.index(following), "at"),
                )
        return self
