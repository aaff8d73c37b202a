"""The A/A control: a baseline against itself, relaunched. What it shows is not speculation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.analyse.boundaries import LookPlan
from orchestrator.analyse.interval import Interval, repeated_interval


@dataclass(frozen=True, slots=True)
class AAControl:
    """How far the baseline differs from itself: the floor under every verdict of the sweep."""

    metric: str
    pairs: int
    interval: Interval | None
    """None with fewer pairs than the plan's first look."""
    largest_log_ratio: float | None
    """Largest |log ratio| of a single pair."""
    log_margin: float

    @property
    def covers_one(self) -> bool | None:
        """Whether 1 lies in the interval; if not, something other than the arms differs."""
        if self.interval is None:
            return None
        return self.interval.log_low <= 0 <= self.interval.log_high

    @property
    def floor(self) -> float | None:
        """The speedup that the control cannot exclude for identical arms, >= 1.

        Formula: exp(max(|low|, |high|)) of the interval on the log scale
        Undefined: no interval.
        """
        if self.interval is None:
            return None
        return math.exp(max(abs(self.interval.log_low), abs(self.interval.log_high)))

    @property
    def trustworthy(self) -> bool | None:
        """Whether the interval does not lie wholly outside the margin of practical equality."""
        if self.interval is None:
            return None
        return (
            self.interval.log_low <= self.log_margin and self.interval.log_high >= -self.log_margin
        )

    def above_floor(self, speedup: float) -> bool | None:
        """Whether a speedup (or slow-down) is larger than the baseline differs from itself."""
        floor = self.floor
        return None if floor is None else abs(math.log(speedup)) > math.log(floor)


def aa_control(
    log_ratios: Sequence[float], plan: LookPlan, *, metric: str, margin: float
) -> AAControl:
    """Summary of an A/A trial's valid pairs. Raises: ValueError for a margin below 0."""
    if margin < 0:
        raise ValueError(f"margin: must be >= 0, but got {margin}")
    return AAControl(
        metric=metric,
        pairs=len(log_ratios),
        interval=repeated_interval(log_ratios, plan),
        largest_log_ratio=max((abs(x) for x in log_ratios), default=None),
        log_margin=math.log1p(margin),
    )
