"""Estimates that a single odd pair cannot move: shown beside the mean, never in its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

OUTLIER_SCORE = 3.5


@dataclass(frozen=True, slots=True)
class RobustEstimate:
    """Where the pairs lie when far ones carry no more weight than near ones."""

    log_center: float
    """Hodges-Lehmann estimate: the median of all means of two pairs."""
    outliers: tuple[int, ...]
    """Positions (in the series) of pairs far from the others; they stay in the mean."""

    @property
    def speedup(self) -> float:
        return math.exp(self.log_center)


def robust_estimate(log_ratios: Sequence[float]) -> RobustEstimate | None:
    """Hodges-Lehmann centre, and the pairs that lie far out.

    Formula: center = median over i <= j of (x_i + x_j) / 2;
        pair i is an outlier when 0.6745 |x_i - median| / MAD > 3.5
    Undefined: no pairs. Without spread (MAD = 0), or with fewer than 5 pairs, no pair is called an
        outlier.
    Source: Hodges & Lehmann 1963, Ann. Math. Stat. 34; Iglewicz & Hoaglin 1993.
    """
    x = np.asarray(log_ratios, dtype=np.float64)
    if x.size == 0:
        return None
    i, j = np.triu_indices(x.size)
    center = float(np.median((x[i] + x[j]) / 2))
    distance = np.abs(x - np.median(x))
    mad = float(np.median(distance))
    if x.size < 5 or mad == 0:
        return RobustEstimate(center, ())
    far = np.flatnonzero(0.6745 * distance / mad > OUTLIER_SCORE)
    return RobustEstimate(center, tuple(int(k) for k in far))
