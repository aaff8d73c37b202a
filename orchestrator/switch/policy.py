"""What an operator may ask of the switch. One section; it can change while the switch runs."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from orchestrator.spec.section import Count, NotNegative, Positive, Section, Share, Text, broken

DEFAULT_STEPS = (0.01, 0.05, 0.25, 0.5, 1.0)


class Ramp(Section):
    """Shares in turn, each held for a time; only healthy time counts."""

    steps: tuple[Share, ...] = Field(default=DEFAULT_STEPS, min_length=1)
    hold_s: Positive = 600.0

    @model_validator(mode="after")
    def _rises(self) -> Ramp:
        if any(low >= high for low, high in pairwise(self.steps)):
            raise broken("must rise from step to step", value=list(self.steps), key=("steps",))
        return self


class Shadow(Section):
    """A share of the baseline's requests is asked of the other arm as well, when the caller has
    its answer; what comes back is compared and thrown away."""

    share: Share
    max_in_flight: Count = 2
    """Mirrored requests at once, per replica of the switch. What exceeds it is dropped."""
    max_load: Count | None = None
    """Callers in flight, over all replicas, above which nothing is mirrored, and what is running
    of it is cut off. None: as many as `max_in_flight`·8."""


class LoadLimit(Section):
    """Speculation pays only up to a load: beyond it every caller gets the baseline."""

    off_above: Positive
    """The measured break-even (`guard.load_max` of a decision)."""
    on_below: NotNegative
    unit: Literal["in_flight", "rps"] = "in_flight"
    """Callers in flight, or requests a second over the last 10 s; over all replicas."""

    @model_validator(mode="after")
    def _hysteresis(self) -> LoadLimit:
        if self.on_below >= self.off_above:
            raise broken(
                "must be below `off_above`, or it would flap",
                value=self.on_below,
                key=("on_below",),
                involves=[("off_above",)],
            )
        return self


class Chosen(Section):
    """Whose requests may go to the speculative arm. What is left out does not restrict."""

    categories: tuple[Text, ...] | None = None
    tenants: tuple[Text, ...] | None = None
    not_categories: tuple[Text, ...] = ()
    not_tenants: tuple[Text, ...] = ()

    def includes(self, category: str | None, tenant: str | None) -> bool:
        wanted = self.categories is None or category in self.categories
        asked = self.tenants is None or tenant in self.tenants
        refused = category in self.not_categories or tenant in self.not_tenants
        return wanted and asked and not refused


class Policy(Section):
    """`off`, a fixed `share`, a `ramp`, or `shadow` alone; each may be narrowed by load and by who
    asks, and each but `off` may mirror as well."""

    mode: Literal["off", "fixed", "ramp", "shadow"] = "off"
    share: Share | None = None
    """Of the callers, for `fixed`. The same user or session stays on its arm, and those who are on
    the speculative arm at a share are on it at every higher share."""
    ramp: Ramp | None = None
    shadow: Shadow | None = None
    load: LoadLimit | None = None
    only: Chosen | None = None

    @model_validator(mode="after")
    def _fits_mode(self) -> Policy:
        if (self.share is None) != (self.mode != "fixed"):
            needed = "is required with" if self.mode == "fixed" else "acts only with"
            raise broken(f"{needed} mode: fixed", key=("share",), involves=[("mode",)])
        if self.ramp is not None and self.mode != "ramp":
            raise broken("acts only with mode: ramp", key=("ramp",), involves=[("mode",)])
        if self.mode == "shadow" and self.shadow is None:
            raise broken("is required with mode: shadow", key=("shadow",), involves=[("mode",)])
        if self.mode == "off" and self.shadow is not None:
            raise broken(
                "acts only while the switch is not off",
                hint="use mode: shadow to mirror and send nobody",
                key=("shadow",),
                involves=[("mode",)],
            )
        return self

    @property
    def steps(self) -> tuple[float, ...]:
        """The shares of callers that this policy walks through; one where it does not ramp."""
        if self.mode == "ramp":
            return (self.ramp or Ramp()).steps
        return (self.share or 0.0,)
