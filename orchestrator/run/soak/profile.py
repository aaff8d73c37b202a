"""Which load is offered when. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.ports import OfferedLoad

WATCHED_MOST = 30
"""Bursts that are watched request by request; of more, evenly spaced ones are."""


@dataclass(frozen=True, slots=True)
class Burst:
    began_s: float
    ended_s: float
    factor: float
    watched: bool


@dataclass(frozen=True)
class Profile:
    """`settings` are a soak's, as plain JSON."""

    settings: Mapping[str, Any]

    def at(self, elapsed_s: float) -> OfferedLoad:
        """Formula: constant: base; diurnal: base (trough + (1 - trough) (1 - cos(2 pi t / period))
        / 2); bursty: base times the factor of the burst that is on.
        """
        factor = self.factor(elapsed_s)
        load = self.settings["load"]
        if load["rate_rps"] is not None:
            return OfferedLoad(rate_rps=load["rate_rps"] * factor)
        return OfferedLoad(concurrency=max(1, round((load["concurrency"] or 4) * factor)))

    def factor(self, elapsed_s: float) -> float:
        settings = self.settings
        if settings["profile"] == "diurnal":
            swing = (1 - math.cos(2 * math.pi * elapsed_s / settings["period"])) / 2
            return float(settings["trough"] + (1 - settings["trough"]) * swing)
        burst = self.burst(elapsed_s)
        return 1.0 if burst is None else burst.factor

    def burst(self, elapsed_s: float) -> Burst | None:
        """The burst that is on; None between bursts, and with every other profile."""
        if self.settings["profile"] != "bursty":
            return None
        bursts, duration = self.settings["bursts"], self.settings["duration"]
        every, lasts = bursts["every"], bursts["lasts"]
        number, into = divmod(elapsed_s, every)
        # Each interval begins quietly: a burst is compared with what was before it.
        began = number * every + every / 2
        if not every / 2 <= into < every / 2 + lasts or began + lasts >= duration:
            return None
        stride = max(1, math.ceil(duration / every / WATCHED_MOST))
        factors = bursts["factors"]
        factor = factors[int(number) // stride % len(factors)]
        return Burst(began, began + lasts, float(factor), int(number) % stride == 0)

    def changes_after(self, elapsed_s: float) -> list[float]:
        """Moments at which the load jumps next."""
        if self.settings["profile"] != "bursty":
            return []
        bursts = self.settings["bursts"]
        number = elapsed_s // bursts["every"]
        began = number * bursts["every"] + bursts["every"] / 2
        following = began + bursts["every"]
        moments = (began, began + bursts["lasts"], following)
        return [moment for moment in moments if moment > elapsed_s]
