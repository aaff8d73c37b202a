"""Does a resource grow without end? A slope that matters, not a saw-tooth and not a warm-up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import stdtr, stdtrit

from orchestrator.analyse.soak.rank_trend import NEAR, RankTrend, rank_trend
from orchestrator.analyse.soak.series import Series, settled, thinned, without_load
from orchestrator.analyse.soak.steps import Step, steps_of

DROP = 0.4
"""A fall by so much of the range, between neighbours, ends a tooth."""
NOISE = 8.0
"""… and is so many times the usual change between neighbours."""
TEETH_MIN = 4
"""Troughs from which the growth of a saw-tooth is read."""
LEVELS_OFF = 0.5
"""A leak goes on: the last half grows at least at half of the pace of the first."""


class Growth(StrEnum):
    NONE = "no leak"
    """It would not fill its room within the horizon."""
    LEAK = "leak"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Leak:
    """Slopes are per hour."""

    growth: Growth
    slope: float | None
    low: float | None
    high: float | None
    bound: float
    """Slope at which the room is filled at the horizon."""
    level: float | None
    """Median of the last tenth."""
    room: float
    hours: float
    shape: str = "steady"
    """`steady`, `saw-tooth`, `levels off`."""
    steps: tuple[Step, ...] = ()
    why: str | None = None

    @property
    def hours_left(self) -> float | None:
        """Until the room is filled at this slope; None unless it leaks."""
        if self.growth is not Growth.LEAK or not self.slope:
            return None
        return self.room / self.slope


def leak_of(
    series: Series, *, room: float | None, horizon_h: float, confidence: float, room_min: float = 0
) -> Leak:
    """One resource of one arm.

    Formula: bound = room / horizon; a leak when the lower end of the slope's interval is above the
    bound, none when the upper end of its 90 % interval is below it. `room` is what is left to the
    limit; None: as much as is in use already, and at least `room_min`.
    A saw-tooth (at least two falls of 40 % of the range) is judged by its troughs. A growth whose
    last half is slower than half of the first levels off, and is judged by that half alone.
    """
    kept = settled(series)
    hours = kept.hours
    level = float(np.median(kept.values[-max(1, kept.points // 10) :])) if kept.points else None
    left = room if room is not None else max(room_min, level or 0.0)
    bound = left / horizon_h if horizon_h > 0 else math.inf

    def judged(trend: RankTrend | None, shape: str, why: str, steps: tuple[Step, ...] = ()) -> Leak:
        if trend is None:
            return Leak(
                Growth.CANNOT_TELL, None, None, None, bound, level, left, hours, shape, steps, why
            )
        growth = (
            Growth.LEAK
            if trend.low > bound
            else Growth.NONE
            if trend.near_high < bound
            else Growth.CANNOT_TELL
        )
        slope, low, high = trend.slope, trend.low, trend.high
        return Leak(growth, slope, low, high, bound, level, left, hours, shape, steps)

    falls = _falls(kept)
    if len(falls) >= 2:
        why = f"a saw-tooth with {len(falls)} troughs, of which {TEETH_MIN} are needed"
        return judged(_of_troughs(kept, falls, confidence), "saw-tooth", why)
    evened = without_load(kept)
    if evened is None:
        return judged(None, "steady", "load and time cannot be told apart")
    few = thinned(evened)
    why = f"{few.points} windows are too few"
    middle = float(np.median(few.at_h)) if few.points else 0.0
    trend = rank_trend(few.at_h, few.values, confidence, segment=few.life)
    if trend is None:
        return judged(None, "steady", why)
    first, last = (
        rank_trend(half.at_h, half.values, confidence, segment=half.life)
        for half in (few.where(few.at_h < middle), few.where(few.at_h >= middle))
    )
    if first is not None and last is not None and first.slope > 0:
        slower = last.slope < LEVELS_OFF * first.slope and last.near_high < first.slope
        if slower:
            return judged(last, "levels off", why, steps_of(few))
    return judged(trend, "steady", why, steps_of(few))


def leaks_more(baseline: Series, speculative: Series, confidence: float) -> RankTrend | None:
    """Trend of the difference of the two arms' resource, per hour."""
    at, left, right = np.intersect1d(baseline.at_h, speculative.at_h, return_indices=True)
    lives = baseline.life[left] * 10_000 + speculative.life[right]
    both = Series(
        at, speculative.values[right] - baseline.values[left], speculative.load[right], lives
    )
    few = thinned(settled(both))
    return rank_trend(few.at_h, few.values, confidence, segment=few.life)


def _falls(series: Series) -> list[int]:
    """Places after a fall, within a life."""
    x = series.values
    if x.size < 4:
        return []
    changes = np.diff(x)
    reach = float(x.max() - x.min())
    usual = float(np.median(np.abs(changes)))
    same = np.diff(series.life) == 0
    found = np.flatnonzero((-changes > DROP * reach) & (-changes > NOISE * usual) & same)
    return [int(place) + 1 for place in found]


def _of_troughs(series: Series, falls: list[int], confidence: float) -> RankTrend | None:
    """Least squares through the troughs, with its t interval: they are few and far apart."""
    if len(falls) < TEETH_MIN:
        return None
    t, x = series.at_h[falls], series.values[falls]
    n = t.size
    centred = t - t.mean()
    power = float(centred @ centred)
    if power == 0:
        return None
    slope = float(centred @ x) / power
    left = x - x.mean() - slope * centred
    error = math.sqrt(float(left @ left) / (n - 2) / power)
    reach, near = (float(stdtrit(n - 2, (1 + level) / 2)) * error for level in (confidence, NEAR))
    p_value = 2 * float(stdtr(n - 2, -abs(slope / error))) if error > 0 else float(slope == 0)
    return RankTrend(
        slope, slope - reach, slope + reach, slope - near, slope + near, p_value, n, 1.0
    )
