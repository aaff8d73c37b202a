"""The interval of a speedup, valid although one looks after every pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analyse.autocorrelation import (
    assumed_autocorrelation,
    inflated_standard_error,
    lag1_autocorrelation,
)
from orchestrator.analyse.boundaries import LookPlan, critical_value, sequential_p_value


@dataclass(frozen=True, slots=True)
class Interval:
    """A repeated confidence interval on the log scale, and what went into it."""

    pairs: int
    log_mean: float
    log_low: float
    log_high: float
    standard_error: float
    """Of the mean, widened for autocorrelation."""
    spread: float
    """Standard deviation between pairs."""
    lag1_autocorrelation: float | None
    """As observed; None when the pairs do not differ."""
    assumed_autocorrelation: float
    critical_value: float

    @property
    def speedup(self) -> float:
        """Geometric mean of the ratios of the pairs."""
        return math.exp(self.log_mean)

    @property
    def low(self) -> float:
        return math.exp(self.log_low)

    @property
    def high(self) -> float:
        return math.exp(self.log_high)

    def inside(self, low: float, high: float) -> bool:
        """Whether the interval of the speedup lies within [low, high]."""
        return low <= self.low and self.high <= high


def repeated_interval(log_ratios: Sequence[float], plan: LookPlan) -> Interval | None:
    """Interval of the speedup after these pairs, one of the looks of `plan`.

    Formula: mean +- c(n) * sqrt(inflation) * s / sqrt(n); c(n) from `critical_value`
    Undefined: fewer than `pairs_min` pairs (a look that the plan does not pay for).
    Raises: ValueError for more than `pairs_max` pairs, or a value that is not finite.
    Source: Jennison & Turnbull 1989, JRSS B 51, 305.
    """
    x = np.asarray(log_ratios, dtype=np.float64)
    if not np.isfinite(x).all():
        raise ValueError(f"log ratios must be finite, but got {list(log_ratios)}")
    pairs = int(x.size)
    if pairs < plan.pairs_min:
        return None
    c = critical_value(plan, pairs)
    mean = float(x.mean())
    error = float(inflated_standard_error(x))
    r1 = float(lag1_autocorrelation(x))
    return Interval(
        pairs=pairs,
        log_mean=mean,
        log_low=mean - c * error,
        log_high=mean + c * error,
        standard_error=error,
        spread=float(x.std(ddof=1)),
        lag1_autocorrelation=None if math.isnan(r1) else r1,
        assumed_autocorrelation=float(assumed_autocorrelation(r1, pairs)),
        critical_value=c,
    )


def p_value_beyond(log_ratios: Sequence[float], plan: LookPlan, log_margin: float) -> float:
    """Sequential p-value of the hypothesis |log speedup| <= log_margin.

    Formula: T = (|mean| - log_margin) / inflated standard error, then `sequential_p_value`;
        1 when the mean itself is within the margin, or before `pairs_min` pairs.
    """
    interval = repeated_interval(log_ratios, plan)
    if interval is None:
        return 1.0
    beyond = abs(interval.log_mean) - log_margin
    if beyond <= 0:
        return 1.0
    if interval.standard_error == 0:
        return sequential_p_value(math.inf, plan, interval.pairs)
    return sequential_p_value(beyond / interval.standard_error, plan, interval.pairs)
