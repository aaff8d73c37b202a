"""The ratio of two arms' totals over the same prompts: output lengths above all.

An inflated length makes tokens per second a lie: an arm that says more for the same question has
more tokens to show for its time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from orchestrator.analyse.paired_outcomes import Comparison
from orchestrator.analyse.permutation import permutation_p_value

PROMPTS_MIN = 10
"""Below this, t intervals of skewed lengths mean little, and equal lengths are no evidence."""


@dataclass(frozen=True, slots=True)
class RatioComparison:
    """Mean of the speculative arm / mean of the baseline, prompt by prompt."""

    comparison: Comparison
    prompts: int
    baseline_mean: float | None
    speculative_mean: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None
    """Sign-flip permutation test of "exchanging the arms changes nothing", two-sided."""
    margin: float
    level: float


def compare_ratio(
    baseline: Sequence[float],
    speculative: Sequence[float],
    rng: np.random.Generator,
    *,
    margin: float = 0.05,
    level: float = 0.05,
    permutations: int = 4999,
    prompts_min: int = PROMPTS_MIN,
) -> RatioComparison:
    """Are the amounts (output tokens, characters) of two arms equal on average?

    Formula: r = Σ s / Σ b with the standard error of a ratio estimator, sd(s − r b) / (√n mean b),
        and a t interval. No practical difference: the 1 − 2·level interval lies strictly within
        [1/(1 + margin), 1 + margin] (TOST); else lower or higher when the 1 − level interval
        excludes 1 and the permutation test is at or below `level`; else cannot tell.
    The permutation test flips the sign of each prompt's difference; its level is exact.
    Undefined: ratio and interval without prompts or when the baseline's mean is 0; cannot tell
        below `prompts_min` prompts.
    Raises: ValueError for lengths that do not match, or a value that is negative or not finite.
    Source: Cochran 1977, Sampling Techniques, chapter 6; Schuirmann 1987.
    """
    b, s = np.asarray(baseline, dtype=np.float64), np.asarray(speculative, dtype=np.float64)
    if b.shape != s.shape:
        raise ValueError(f"one value per prompt in each arm, but got {b.size} and {s.size}")
    if not (np.isfinite(b).all() and np.isfinite(s).all() and (b >= 0).all() and (s >= 0).all()):
        raise ValueError("amounts must be finite and >= 0")
    n = int(b.size)
    mean_b = float(b.mean()) if n else None
    mean_s = float(s.mean()) if n else None
    if not mean_b or mean_s is None or n < 2:
        return RatioComparison(
            Comparison.CANNOT_TELL, n, mean_b, mean_s, None, None, None, None, margin, level
        )
    ratio = mean_s / mean_b
    error = float((s - ratio * b).std(ddof=1)) / (math.sqrt(n) * mean_b)
    wide = float(stats.t.ppf(1 - level / 2, n - 1)) * error
    narrow = float(stats.t.ppf(1 - level, n - 1)) * error
    p_value = sign_flip_p_value(s - b, rng, permutations)
    comparison = Comparison.CANNOT_TELL
    if n >= prompts_min:
        if 1 / (1 + margin) < ratio - narrow and ratio + narrow < 1 + margin:
            comparison = Comparison.NO_PRACTICAL_DIFFERENCE
        elif p_value <= level and ratio - wide > 1:
            comparison = Comparison.HIGHER
        elif p_value <= level and ratio + wide < 1:
            comparison = Comparison.LOWER
    return RatioComparison(
        comparison, n, mean_b, mean_s, ratio, ratio - wide, ratio + wide, p_value, margin, level
    )


def sign_flip_p_value(
    differences: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]],
    rng: np.random.Generator,
    permutations: int = 4999,
) -> float:
    """Two-sided p-value of "each difference is as likely with the other sign".

    Formula: how often |Σ ± d_i| >= |Σ d_i| over random signs, the truth included; 1 when all are 0.
    """
    d = np.asarray(differences, dtype=np.float64)
    signs = rng.integers(0, 2, (permutations, d.size)) * 2.0 - 1.0
    return permutation_p_value(np.abs(np.concatenate([[d.sum()], signs @ d])))
