"""What may be planted in a simulated server: faults at known moments, drifts of known rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Faults:
    """Planted faults. Times are seconds of the engine's life (0 = it began to answer)."""

    crash_at_s: float | None = None
    hang_from_s: float | None = None
    stall_at_s: float | None = None
    stall_s: float = 0.0
    error_on_request: int | None = None
    """The n-th request (from 1) is answered with HTTP 500."""
    error_mid_stream_on_request: int | None = None
    """The n-th request breaks after its first chunk."""
    garbage_output: bool = False
    slow_start_s: float = 0.0
    start_failure: Literal["out_of_memory", "start_failed"] | None = None

    @property
    def first_at_s(self) -> float:
        """The earliest moment at which the clock matters; infinity when none is planted."""
        moments = (self.crash_at_s, self.hang_from_s, self.stall_at_s)
        return min((at for at in moments if at is not None), default=math.inf)


@dataclass(frozen=True)
class Drifts:
    """Planted slow changes over the engine's life; a restart undoes them."""

    acceptance_decay_per_hour: float = 0.0
    """Acceptance is multiplied by exp(−rate · hours)."""
    acceptance_decay_by_category: Mapping[str, float] = field(default_factory=dict)
    step_growth_per_hour: float = 0.0
    """Step time is multiplied by 1 + rate · hours."""
    leak_bytes_per_s: float = 0.0
    leak_when: Literal["always", "speculating", "not_speculating"] = "always"
    """`not_speculating`: only in steps where the schedule sets the length to 0."""

    @property
    def acceptance_changes(self) -> bool:
        return self.acceptance_decay_per_hour != 0 or any(
            self.acceptance_decay_by_category.values()
        )

    def acceptance_factor(self, category: str, age_s: float) -> float:
        rate = self.acceptance_decay_by_category.get(category, self.acceptance_decay_per_hour)
        return math.exp(-rate * age_s / SECONDS_PER_HOUR)

    def step_factor(self, age_s: float) -> float:
        return 1.0 + self.step_growth_per_hour * age_s / SECONDS_PER_HOUR

    def leaks(self, speculating: bool) -> bool:
        return self.leak_when == "always" or (self.leak_when == "speculating") == speculating
