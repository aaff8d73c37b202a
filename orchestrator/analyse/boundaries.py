"""How far the interval must reach at every look, so that looking often costs nothing.

An alpha-spending plan for repeated confidence intervals (Jennison & Turnbull 1989, JRSS B 51). The
levels are tabulated (`boundaries.csv`); `boundary_calibration` says how, and under which noise.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from scipy.special import stdtr, stdtrit

from orchestrator.analyse.autocorrelation import FloatArray

LONGEST = 64
"""Pairs of the longest tabulated plan."""


@dataclass(frozen=True, slots=True)
class LookPlan:
    """Looks after every pair from `pairs_min` to `pairs_max`; together they err at `alpha`.

    Raises: ValueError unless 0.5 <= confidence < 1 and 2 <= pairs_min <= pairs_max.
    """

    confidence: float
    pairs_min: int
    pairs_max: int

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1:
            raise ValueError(
                f"confidence: `0.5 <= confidence < 1` must hold, but got {self.confidence}"
            )
        if not 2 <= self.pairs_min <= self.pairs_max:
            raise ValueError(
                "pairs: `2 <= min <= max` must hold, "
                f"but got (min={self.pairs_min}, max={self.pairs_max})"
            )

    @property
    def alpha(self) -> float:
        return 1 - self.confidence


@dataclass(frozen=True)
class _Table:
    alphas: FloatArray
    levels: dict[tuple[int, int], FloatArray]
    """(pairs_min, pairs_max) -> nominal level of the last look, for each alpha (ascending)."""


@cache
def _table() -> _Table:
    text = files("orchestrator.analyse").joinpath("boundaries.csv").read_text("ascii")
    head, *rows = csv.reader(text.splitlines())
    alphas = np.array([float(a) for a in head[2:]])
    order = np.argsort(alphas)
    return _Table(
        alphas[order],
        {(int(r[0]), int(r[1])): np.array([float(v) for v in r[2:]])[order] for r in rows},
    )


def union_bound_level(pairs_min: int, pairs_max: int, alpha: float) -> float:
    """Level of the last look by Bonferroni, with levels in proportion to the number of pairs.

    Formula: p_max with sum_{n=min..max} p_max n / max = alpha. Needs no simulation; wide.
    """
    pairs_summed = (pairs_min + pairs_max) * (pairs_max - pairs_min + 1) / 2
    return alpha * pairs_max / pairs_summed


@cache
def _tabulated(pairs_min: int, pairs_max: int) -> tuple[FloatArray, FloatArray]:
    """(alphas, levels of the last look), from the nearest entry that makes at least these looks."""
    table = _table()
    last = min(m for _, m in table.levels if m >= pairs_max)
    first = max(m for m, end in table.levels if m <= pairs_min and end == last)
    # Levels grow in proportion to n: at pairs_max the entry's level is a little lower.
    return table.alphas, table.levels[first, last] * (pairs_max / last)


@cache
def last_look_level(pairs_min: int, pairs_max: int, alpha: float) -> float:
    """Two-sided nominal level of the look at `pairs_max`.

    Formula: from the table, log-log linear between its alphas, extended below the smallest by the
        last slope; never above the union bound there. More than 64 pairs: the smaller of the union
        bound and the table's level at 64.
    """
    alphas, levels = _tabulated(min(pairs_min, LONGEST), min(pairs_max, LONGEST))
    log_alphas, log_levels = np.log(alphas), np.log(levels)
    wanted = math.log(min(alpha, float(alphas[-1])))
    if alpha < alphas[0]:
        slope = (log_levels[1] - log_levels[0]) / (log_alphas[1] - log_alphas[0])
        level = math.exp(float(log_levels[0] + slope * (wanted - log_alphas[0])))
        return min(level, union_bound_level(pairs_min, pairs_max, alpha))
    level = math.exp(float(np.interp(wanted, log_alphas, log_levels)))
    if pairs_max > LONGEST:
        return min(level, union_bound_level(pairs_min, pairs_max, alpha))
    return level


def nominal_level(plan: LookPlan, pairs: int) -> float:
    """Two-sided level of the look after `pairs` pairs.

    Formula: p(n) = p_max * n / pairs_max
    Raises: ValueError when the plan has no look there.
    """
    if not plan.pairs_min <= pairs <= plan.pairs_max:
        raise ValueError(
            f"a look after {pairs} pairs is not in the plan: "
            f"`{plan.pairs_min} <= pairs <= {plan.pairs_max}` must hold"
        )
    level = last_look_level(plan.pairs_min, plan.pairs_max, plan.alpha)
    return level * pairs / plan.pairs_max


def critical_value(plan: LookPlan, pairs: int) -> float:
    """How many inflated standard errors the interval reaches to either side of the mean.

    Formula: t quantile, n - 1 degrees of freedom, at 1 - p(n) / 2
    """
    return float(-stdtrit(pairs - 1, nominal_level(plan, pairs) / 2))


def sequential_p_value(t_statistic: float, plan: LookPlan, pairs: int) -> float:
    """The smallest alpha at which this look's interval would leave out the hypothesis.

    It holds at whatever look one stops. Formula: the alpha with p(n; alpha) = P(|t_(n-1)| > |T|);
    1 when that alpha would be above the table's largest (0.2).
    """
    observed = 2 * float(stdtr(pairs - 1, -abs(t_statistic)))
    # Bisection on log alpha: monotone, and the same function that made the intervals.
    low, high = math.log(1e-12), math.log(float(_table().alphas[-1]))

    def level(log_alpha: float) -> float:
        # Not through the cache: every pair has its own alphas.
        uncached = last_look_level.__wrapped__
        return float(
            uncached(plan.pairs_min, plan.pairs_max, math.exp(log_alpha)) * pairs / plan.pairs_max
        )

    if observed > level(high):
        return 1.0
    if observed <= level(low):
        return math.exp(low)
    for _ in range(50):
        middle = (low + high) / 2
        if level(middle) < observed:
            low = middle
        else:
            high = middle
    return math.exp(high)
