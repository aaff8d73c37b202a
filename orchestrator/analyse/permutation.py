"""Permutation tests: the labels of two samples are exchanged, the statistic is computed again.

One convention: an array of statistics whose first entry belongs to the labels as observed and whose
others belong to random relabellings. Under the null hypothesis (the samples are independent and of
one distribution) all entries are exchangeable, so the p-value below is valid for any statistic and
any number of permutations; nothing is asymptotic.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]

RELATIVE_TIE = 1e-9
"""Statistics closer than this (relative) are ties: rounding must not decide a p-value."""


def relabellings(first: int, second: int, permutations: int, rng: np.random.Generator) -> Labels:
    """True = the sample belongs to the first arm. Shape (1 + permutations, first + second).

    Row 0 is the truth (the first arm's samples come first); the others are drawn uniformly.
    Raises: ValueError for an empty arm or no permutations.
    """
    if first < 1 or second < 1 or permutations < 1:
        raise ValueError(
            "each arm needs at least one sample and the test one permutation, but got "
            f"{first}, {second} and {permutations}"
        )
    truth = np.zeros((1, first + second), dtype=np.bool_)
    truth[0, :first] = True
    shuffled = rng.permuted(np.repeat(truth, permutations, axis=0), axis=1)
    return np.concatenate([truth, shuffled])


def permutation_p_value(statistics: Floats) -> float:
    """How often a relabelling is at least as extreme as the truth, the truth included.

    Formula: #{i : T_i >= T_0} / (1 + permutations), i from 0; never 0.
    Source: Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9, "Permutation p-values should
        never be zero".
    """
    return float(_at_least(statistics, statistics[0]).mean())


def combined(per_prompt: Floats) -> Floats:
    """One statistic for all prompts, from independent relabellings within each.

    Formula: Σ over prompts of (T_p,i − mean_i T_p) / sd_i T_p; a prompt whose statistic never
        varies says nothing and adds 0. Mean and standard deviation run over all relabellings, the
        truth included, so the sums are as exchangeable as their parts.
    Shape: (prompts, 1 + permutations) -> (1 + permutations,)
    """
    mean = per_prompt.mean(axis=1, keepdims=True)
    spread = per_prompt.std(axis=1, keepdims=True)
    varies = spread > RELATIVE_TIE * np.maximum(np.abs(mean), 1e-300)
    standardised = np.where(varies, (per_prompt - mean) / np.where(varies, spread, 1.0), 0.0)
    return np.asarray(standardised.sum(axis=0), dtype=np.float64)


def permutations_needed(prompts: int, level: float) -> int:
    """Fewest permutations with which Holm over so many prompts can reject at all.

    Formula: ceil(2 · prompts / level), as each half of the test has half the level (`two_sample`);
        the smallest p-value, 1 / (1 + permutations), is then below level / (2 · prompts).
    """
    return math.ceil(2 * prompts / level)


def _at_least(statistics: Floats, observed: float) -> NDArray[np.bool_]:
    tolerance = RELATIVE_TIE * max(1e-300, abs(float(observed)))
    return np.asarray(statistics >= observed - tolerance)
