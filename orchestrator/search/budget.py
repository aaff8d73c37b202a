"""How much of a search's budget is spent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """What may be spent; None: no limit. A pair holds `devices_per_pair` devices, and so many pairs
    are measured at once."""

    trials: int | None = None
    minutes: float | None = None
    device_hours: float | None = None
    devices_per_pair: float = 1.0
    pairs_at_once: int = 1

    def over(self, *, trials: int, pair_s: float) -> str | None:
        """Which limit is reached, in words; None: none is.

        `trials` were begun; `pair_s` are the seconds that device pairs were held by them, summed.
        Formula: minutes = pair_s / pairs at once / 60; device-hours = pair_s x devices / 3600.
        """
        if self.trials is not None and trials >= self.trials:
            return f"{self.trials} trials were begun"
        return self.time_over(pair_s=pair_s)

    def time_over(self, *, pair_s: float) -> str | None:
        """The same for the limits on time alone."""
        minutes = pair_s / self.pairs_at_once / 60
        if self.minutes is not None and minutes >= self.minutes:
            return f"{self.minutes:g} minutes are spent"
        device_hours = pair_s * self.devices_per_pair / 3600
        if self.device_hours is not None and device_hours >= self.device_hours:
            return f"{self.device_hours:g} device-hours are spent"
        return None
