"""Does a figure change while hours go by, and is it speculation's doing?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from orchestrator.analyse.soak.rank_trend import RankTrend, rank_trend
from orchestrator.analyse.soak.series import Series, settled, thinned, without_load
from orchestrator.analyse.soak.steps import Step, steps_of


class Change(StrEnum):
    """What became of a figure over the time that was measured."""

    STEADY = "steady"
    """Its change is shown to be within the margin."""
    WORSE = "worse"
    BETTER = "better"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Drift:
    """A change over `hours`: a share of the level at the start, or a difference (`relative`)."""

    change: Change
    total: float | None
    low: float | None
    high: float | None
    hours: float
    relative: bool
    steps: tuple[Step, ...] = ()
    why: str | None = None
    """Why it cannot be told."""
    margin: float = 0.05
    """The change that matters."""

    @property
    def hours_to_margin(self) -> float | None:
        """Until as much is lost as matters, at this slope; None unless it gets worse."""
        if self.change is not Change.WORSE or not self.total:
            return None
        return self.hours * self.margin / abs(self.total)


def drift_of(
    series: Series,
    *,
    higher_is_better: bool,
    confidence: float,
    margin: float,
    relative: bool = True,
) -> Drift:
    """One arm's figure, freed of its load.

    Formula: total = slope of log x times hours, as exp(...) - 1 (`relative`), or slope times hours.
    worse / better: the interval leaves out 0, and the change as estimated is beyond the margin;
    steady: the whole 90 % interval is within the margin; where the slope leaves it open, steps that
    add up to the margin are a change, too; anything else cannot be told.
    """
    if relative:
        positive = series.values > 0
        series = series.where(positive)
        series = Series(series.at_h, np.log(series.values), series.load, series.life)
    evened = without_load(settled(series))
    if evened is None:
        why = "load and time cannot be told apart: less than a whole period of the load was seen"
        return Drift(Change.CANNOT_TELL, None, None, None, series.hours, relative, why=why)
    return _judged(evened, higher_is_better, confidence, margin, relative)


def drift_between(
    baseline: Series,
    speculative: Series,
    *,
    higher_is_better: bool,
    confidence: float,
    margin: float,
    relative: bool = True,
) -> Drift:
    """The change of the speculative arm less that of the baseline, at the same moments.

    What both arms share (load, neighbours, heat) drops out before a trend is looked for.
    """
    at, left, right = np.intersect1d(baseline.at_h, speculative.at_h, return_indices=True)
    a, b = baseline.values[left], speculative.values[right]
    if relative:
        kept = (a > 0) & (b > 0)
        at, left, right = at[kept], left[kept], right[kept]
        a, b = np.log(a[kept]), np.log(b[kept])
    # A life of either arm is a level of its own.
    lives = baseline.life[left] * 10_000 + speculative.life[right]
    both = Series(at, b - a, speculative.load[right], lives)
    # Both have the same load, yet they may answer to it differently.
    evened = without_load(settled(both))
    return _judged(
        settled(both) if evened is None else evened, higher_is_better, confidence, margin, relative
    )


def _judged(
    series: Series, higher_is_better: bool, confidence: float, margin: float, relative: bool
) -> Drift:
    steps = steps_of(thinned(series))
    few = thinned(series)
    trend = rank_trend(few.at_h, few.values, confidence, segment=few.life)
    hours = series.hours
    if trend is None:
        why = f"{few.points} windows are too few"
        return Drift(Change.CANNOT_TELL, None, None, None, hours, relative, steps, why)
    total, low, high, *near = _over(trend, hours, relative)
    change = _change(total, (low, high), (near[0], near[1]), higher_is_better, margin)
    jumped = sum(step.change for step in steps)
    jumped = math.expm1(jumped) if relative else jumped
    if change is Change.CANNOT_TELL and abs(jumped) >= margin:
        # A jump makes the slope uncertain, and is certain itself.
        total = jumped
        change = Change.BETTER if (jumped > 0) == higher_is_better else Change.WORSE
    return Drift(
        change,
        total,
        low,
        high,
        hours,
        relative,
        steps,
        margin=margin,
    )


def _over(trend: RankTrend, hours: float, relative: bool) -> list[float]:
    """The slope and its intervals' ends as changes over the time."""
    slopes = (trend.slope, trend.low, trend.high, trend.near_low, trend.near_high)
    ends = [slope * hours for slope in slopes]
    return [_change_of(end) for end in ends] if relative else ends


def _change_of(log_ratio: float) -> float:
    """As a share; an end that is not bounded stays so."""
    return math.expm1(log_ratio) if log_ratio < 50 else math.inf


def _change(
    total: float,
    interval: tuple[float, float],
    near: tuple[float, float],
    higher_is_better: bool,
    margin: float,
) -> Change:
    if -margin < near[0] and near[1] < margin:
        return Change.STEADY
    if (interval[0] > 0 or interval[1] < 0) and abs(total) >= margin:
        return Change.BETTER if (total > 0) == higher_is_better else Change.WORSE
    return Change.CANNOT_TELL
