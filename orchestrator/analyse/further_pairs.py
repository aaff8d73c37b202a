"""How many more pairs would decide."""

from __future__ import annotations

import math
from dataclasses import replace

from orchestrator.analyse.autocorrelation import assumed_autocorrelation, variance_inflation
from orchestrator.analyse.boundaries import LookPlan, critical_value
from orchestrator.analyse.interval import Interval

MOST = 10_000
"""Beyond this the answer is "do not wait for it"."""


def pairs_needed(interval: Interval, plan: LookPlan, log_margin: float) -> int | None:
    """Further pairs after which the interval would decide, if mean and noise stay as they are.

    Formula: the smallest n' > n with half-width(n') < ||mean| - log_margin|, under a plan whose
        last look is max(pairs_max, n'), or whose only look is n', less n. An estimate,
        not a promise: with the truth where the mean is now, half of all trials need more.
    Undefined: more than 10,000 in all, e.g. with the mean at the margin.
    """
    gap = abs(abs(interval.log_mean) - log_margin)
    if _half_width(interval, plan, MOST) >= gap:
        return None
    low, high = interval.pairs, MOST
    while high - low > 1:
        middle = (low + high) // 2
        if _half_width(interval, plan, middle) < gap:
            high = middle
        else:
            low = middle
    return high - interval.pairs


def _half_width(interval: Interval, plan: LookPlan, pairs: int) -> float:
    if plan.pairs_min == plan.pairs_max:
        longer = replace(plan, pairs_min=pairs, pairs_max=pairs)
    else:
        longer = replace(plan, pairs_max=max(plan.pairs_max, pairs))
    r1 = interval.lag1_autocorrelation
    rho = assumed_autocorrelation(math.nan if r1 is None else r1, pairs)
    error = interval.spread * math.sqrt(float(variance_inflation(rho, pairs)) / pairs)
    return critical_value(longer, pairs) * error
