"""How much successive pairs resemble each other, and what that costs in certainty."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]

PRIOR_RHO = 0.5
PRIOR_PAIRS = 8.0
"""Few pairs say little about their own autocorrelation, so the estimate starts from 0.5 with the
weight of eight pairs; data that show none pull it down."""
CAP_RHO = 0.8


def lag1_autocorrelation(log_ratios: ArrayLike) -> FloatArray:
    """Sample autocorrelation of neighbouring pairs, along the last axis.

    Formula: r1 = sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)^2
    Undefined: NaN for fewer than 2 pairs or when all are equal.
    """
    x = np.asarray(log_ratios, dtype=np.float64)
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)
    deviation = x - x.mean(axis=-1, keepdims=True)
    spread = np.sum(deviation * deviation, axis=-1)
    lagged = np.sum(deviation[..., 1:] * deviation[..., :-1], axis=-1)
    ratio = np.full(spread.shape, np.nan)
    np.divide(lagged, spread, out=ratio, where=spread > 0)
    return ratio


def assumed_autocorrelation(r1: ArrayLike, pairs: int) -> FloatArray:
    """The autocorrelation that the interval allows for; never negative.

    Formula: u = r1 + (1 + 3 max(r1, 0)) / n          (first-order bias of r1 taken out)
             rho = clip((n u + 8 * 0.5) / (n + 8), 0, 0.8)
    NaN (no spread) is taken as u = 0.5.
    Source: Marriott & Pope 1954 and Kendall 1954, Biometrika 41, for the bias; the weight towards
    0.5 is ours, and the boundaries are calibrated with it (`boundary_calibration`).
    """
    raw = np.asarray(r1, dtype=np.float64)
    unbiased = np.where(np.isnan(raw), PRIOR_RHO, raw + (1 + 3 * np.maximum(raw, 0)) / pairs)
    shrunk = (pairs * unbiased + PRIOR_PAIRS * PRIOR_RHO) / (pairs + PRIOR_PAIRS)
    return np.clip(shrunk, 0.0, CAP_RHO)


def variance_inflation(rho: ArrayLike, pairs: int) -> FloatArray:
    """Var(mean) under AR(1) noise, over what s^2 / n would say on average; 1 at rho = 0.

    Formula: V = 1 + 2 sum_{k<n} (1 - k/n) rho^k;  inflation = V (n - 1) / (n - V)
    (the numerator widens Var(mean), the denominator mends E[s^2] = sigma^2 (n - V)/(n - 1))
    Source: Anderson 1971, The Statistical Analysis of Time Series, ch. 8.
    """
    r = np.asarray(rho, dtype=np.float64)
    # Closed form of the sum, so that a million simulated trials are cheap.
    v = (1 + r) / (1 - r) - 2 * r * (1 - r**pairs) / (pairs * (1 - r) ** 2)
    return np.asarray(v * (pairs - 1) / (pairs - v), dtype=np.float64)


def inflated_standard_error(log_ratios: ArrayLike) -> FloatArray:
    """Standard error of the mean of the pairs, widened for their autocorrelation.

    Formula: sqrt(inflation(rho, n)) * s / sqrt(n)
    Shape: (..., n) -> (...)
    Undefined: NaN for fewer than 2 pairs.
    """
    x = np.asarray(log_ratios, dtype=np.float64)
    pairs = x.shape[-1]
    if pairs < 2:
        return np.full(x.shape[:-1], np.nan)
    rho = assumed_autocorrelation(lag1_autocorrelation(x), pairs)
    s = np.std(x, axis=-1, ddof=1)
    return np.asarray(s * np.sqrt(variance_inflation(rho, pairs) / pairs), dtype=np.float64)
