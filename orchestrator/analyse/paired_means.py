"""A score of each answer (distinctness, similarity, kept information) in both arms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from orchestrator.analyse.paired_outcomes import Comparison
from orchestrator.analyse.paired_ratio import PROMPTS_MIN, sign_flip_p_value


@dataclass(frozen=True, slots=True)
class MeanComparison:
    """Mean difference of a score, speculative − baseline, over prompts that have it in both."""

    comparison: Comparison
    prompts: int
    baseline_mean: float | None
    speculative_mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    margin: float
    level: float


def compare_means(
    baseline: Mapping[str, float | None],
    speculative: Mapping[str, float | None],
    rng: np.random.Generator,
    *,
    margin: float,
    level: float = 0.05,
    permutations: int = 4999,
    prompts_min: int = PROMPTS_MIN,
) -> MeanComparison:
    """Are the scores of two arms equal on average, within `margin` in the score's own unit?

    Formula: mean of the differences with a t interval; TOST at `level` first, then the 1 − level
        interval together with the sign-flip permutation test, as in `paired_ratio.compare_ratio`.
    A prompt whose score is undefined (None) in either arm is left out.
    Raises: ValueError for a margin that is not positive.
    """
    if not margin > 0:
        raise ValueError(f"margin: must be > 0, got {margin}")
    pairs = [
        (mine, its)
        for prompt, mine in baseline.items()
        if mine is not None and (its := speculative.get(prompt)) is not None
    ]
    n = len(pairs)
    if n < 2:
        return MeanComparison(
            Comparison.CANNOT_TELL, n, None, None, None, None, None, None, margin, level
        )
    table = np.asarray(pairs, dtype=np.float64)
    d = table[:, 1] - table[:, 0]
    mean, error = float(d.mean()), float(d.std(ddof=1)) / math.sqrt(n)
    wide = float(stats.t.ppf(1 - level / 2, n - 1)) * error
    narrow = float(stats.t.ppf(1 - level, n - 1)) * error
    p_value = sign_flip_p_value(d, rng, permutations)
    comparison = Comparison.CANNOT_TELL
    if n >= prompts_min:
        if -margin < mean - narrow and mean + narrow < margin:
            comparison = Comparison.NO_PRACTICAL_DIFFERENCE
        elif p_value <= level and mean - wide > 0:
            comparison = Comparison.HIGHER
        elif p_value <= level and mean + wide < 0:
            comparison = Comparison.LOWER
    return MeanComparison(
        comparison,
        n,
        float(table[:, 0].mean()),
        float(table[:, 1].mean()),
        mean,
        mean - wide,
        mean + wide,
        p_value,
        margin,
        level,
    )
