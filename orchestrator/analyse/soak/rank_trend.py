"""The trend of a series that remembers: by ranks, its interval as wide as its memory asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit
from scipy.stats import rankdata

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

POINTS_MIN = 8
LAG_SIGNIFICANT = 1.96
RHO_MAX = 0.95
NEAR = 0.90
"""Two one-sided tests at 0.05: the interval by which a slope is shown to be small."""
FREEDOM_MIN = 3.0


@dataclass(frozen=True, slots=True)
class RankTrend:
    """A slope per unit of time with its two-sided intervals."""

    slope: float
    low: float
    high: float
    near_low: float
    near_high: float
    """At 90 %, whatever the confidence asked for: to show that a slope is small takes no correction
    for many trends, since all of them must be."""
    p_value: float
    """Of no monotone trend, two-sided."""
    points: int
    inflation: float
    """Variance of Kendall's S over what it would be if neighbours were independent; >= 1."""


def rank_trend(
    at: ArrayLike, values: ArrayLike, confidence: float, *, segment: ArrayLike | None = None
) -> RankTrend | None:
    """Theil-Sen slope, its interval, and the Mann-Kendall test, both widened for autocorrelation.

    Pairs are taken within a segment only (one life of an engine): a level that jumps when an engine
    is started anew is no trend.

    Formula: slope = median of (x_j - x_i) / (t_j - t_i); S = sum of the signs of x_j - x_i;
        Var(S) = f * sum over segments of n(n-1)(2n+5)/18 less ties;
        interval: the slopes at the ranks (N -+ q sqrt(Var S)) / 2 of all N;
        f = 1 + 2 / (n(n-1)(n-2)) * sum_k (n-k)(n-k-1)(n-k-2) rho_k, with the autocorrelation rho_k
        of the ranks of the detrended series: the larger of what its significant lags say, what an
        AR(1) process of its first lag (bias taken out) would have, and 1;
        q of Student's t with n/f - 2 degrees of freedom.
    Undefined: fewer than 8 points, or all at one time.
    Source: Sen 1968, J. Am. Stat. Assoc. 63; Hamed & Rao 1998, J. Hydrol. 204; Hirsch & Slack 1984,
        Water Resour. Res. 20, for sums over segments; the AR(1) term and t are ours: calibrated in
        tests/analyse/soak (power).
    Raises: ValueError when lengths differ.
    """
    t, x = np.asarray(at, dtype=np.float64), np.asarray(values, dtype=np.float64)
    lives = np.zeros(t.size, dtype=np.int64) if segment is None else np.asarray(segment, np.int64)
    if not t.size == x.size == lives.size:
        raise ValueError(f"{t.size} times, {x.size} values, {lives.size} segments: must match")
    if t.size < POINTS_MIN:
        return None
    slopes, s = _pairwise(t, x, lives)
    if slopes.size == 0:
        return None
    slope = float(np.median(slopes))
    variance = sum(_variance_of_s(x[lives == life]) for life in np.unique(lives))
    if variance == 0:  # all values are one
        return RankTrend(slope, slope, slope, slope, slope, 1.0, t.size, 1.0)
    inflation = variance_inflation(_detrended(t, x, slope, lives))
    freedom = max(FREEDOM_MIN, t.size / inflation - 2)
    spread = math.sqrt(variance * inflation)
    score = max(0.0, abs(s) - 1) / spread
    slopes.sort()
    ends = []
    for level in (confidence, NEAR):
        reach = float(stdtrit(freedom, (1 + level) / 2)) * spread
        ends += [_at_rank(slopes, (slopes.size + sign * reach) / 2) for sign in (-1, 1)]
    p_value = 2 * float(stdtr(freedom, -score))
    return RankTrend(slope, ends[0], ends[1], ends[2], ends[3], p_value, t.size, inflation)


def variance_inflation(residuals: FloatArray) -> float:
    """f of `rank_trend`, from a series without its trend."""
    n = residuals.size
    ranks = rankdata(residuals)
    ranks = ranks - ranks.mean()
    power = float(ranks @ ranks)
    if power == 0 or n < POINTS_MIN:
        return 1.0
    spectrum = np.fft.rfft(ranks, 2 * n)
    rho = np.fft.irfft(spectrum * np.conj(spectrum), 2 * n)[1:n] / power
    lags = np.arange(1, n, dtype=np.float64)
    weight = (n - lags) * (n - lags - 1) * (n - lags - 2)
    scale = 2 / (n * (n - 1) * (n - 2))
    # Estimates of far lags are noise, and of a short series they are mostly below the truth.
    kept = (np.abs(rho) > LAG_SIGNIFICANT / math.sqrt(n)) & (lags <= n / 4)
    observed = 1 + scale * float(weight @ np.where(kept, rho, 0.0))
    first = min(RHO_MAX, max(0.0, (n * float(rho[0]) + 2) / (n - 4)))
    lasting = 1 + scale * float(weight @ (6 / math.pi * np.arcsin(first**lags / 2)))
    return max(1.0, observed, lasting if first > LAG_SIGNIFICANT / math.sqrt(n) else 1.0)


def _pairwise(t: FloatArray, x: FloatArray, lives: IntArray) -> tuple[FloatArray, int]:
    """Every slope within a segment, and Kendall's S."""
    i, j = np.triu_indices(t.size, 1)
    usable = (lives[i] == lives[j]) & (t[i] != t[j])
    i, j = i[usable], j[usable]
    run, rise = t[j] - t[i], x[j] - x[i]
    return rise / run, int(np.sign(rise).sum())


def _variance_of_s(x: FloatArray) -> float:
    n = x.size
    _, counts = np.unique(x, return_counts=True)
    ties = counts * (counts - 1) * (2 * counts + 5)
    return float(n * (n - 1) * (2 * n + 5) - ties.sum()) / 18


def _detrended(t: FloatArray, x: FloatArray, slope: float, lives: IntArray) -> FloatArray:
    left = x - slope * t
    for life in np.unique(lives):
        left[lives == life] -= np.median(left[lives == life])
    return left


def _at_rank(ordered: FloatArray, rank: float) -> float:
    """The value at a rank counted from 0; beyond the ends the sample does not say: infinite."""
    if rank < 0:
        return -math.inf
    if rank > ordered.size - 1:
        return math.inf
    return float(np.interp(rank, np.arange(ordered.size), ordered))
