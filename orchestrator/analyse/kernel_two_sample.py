"""Kernel two-sample test: do two arms' answers, as embedding vectors, have one distribution?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.analyse.permutation import Floats, Labels


def mmd_statistics(
    first: Floats, second: Floats, labels: Labels, *, bandwidth: float | None = None
) -> Floats:
    """Unbiased squared maximum mean discrepancy with a Gaussian kernel, per relabelling.

    Formula: mean k(x, x') over pairs within the first arm + mean k(y, y') within the second
        − 2 mean k(x, y) across, with k(x, y) = exp(−|x − y|² / (2 h²)) and h the bandwidth: the
        median heuristic unless given. It may be below 0.
    Shape: (n, d), (m, d) -> (1 + permutations,)
    Raises: ValueError for fewer than two vectors in an arm, other dimensions, or labels of other
        samples.
    Source: Gretton et al. 2012, JMLR 13, "A kernel two-sample test".
    """
    n, m = _checked(first, second, labels)
    pooled = np.concatenate([first, second]).astype(np.float64)
    squared = _squared_distances(pooled)
    h = median_bandwidth(squared) if bandwidth is None else bandwidth
    if h is None:
        return np.zeros(labels.shape[0])
    kernel = np.exp(-squared / (2 * h * h))
    np.fill_diagonal(kernel, 0.0)
    in_first = labels.astype(np.float64)
    to_first = in_first @ kernel
    within_first = (to_first * in_first).sum(axis=1)
    across = to_first.sum(axis=1) - within_first
    within_second = kernel.sum() - within_first - 2 * across
    discrepancy: Floats = (
        within_first / (n * (n - 1)) + within_second / (m * (m - 1)) - 2 * across / (n * m)
    )
    return discrepancy


def median_bandwidth(squared: NDArray[np.float64]) -> float | None:
    """Median distance between two different vectors of the pooled sample.

    It does not depend on the labels, so choosing it from the data does not disturb the test.
    Equal vectors (answers that came out the same) are left out: they would drive it to 0.
    Undefined: None when all vectors are equal.
    """
    above = squared[np.triu_indices_from(squared, k=1)]
    apart = above[above > 0]
    return float(np.sqrt(np.median(apart))) if apart.size else None


def _squared_distances(x: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = (x * x).sum(axis=1)
    squared: NDArray[np.float64] = norms[:, None] + norms[None, :] - 2 * x @ x.T
    # Rounding leaves equal vectors about 1e-16 of their norm apart.
    squared[squared < 1e-12 * max(float(norms.max()), 1e-300)] = 0.0
    return squared


def _checked(first: Floats, second: Floats, labels: Labels) -> tuple[int, int]:
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError(
            "embeddings must have shapes (n, d) and (m, d), but got "
            f"{first.shape} and {second.shape}"
        )
    n, m = first.shape[0], second.shape[0]
    if n < 2 or m < 2:
        raise ValueError(f"each arm needs at least two embeddings, but got {n} and {m}")
    if labels.shape[1] != n + m or int(labels[0].sum()) != n:
        raise ValueError(
            f"labels are for {int(labels[0].sum())} of {labels.shape[1]} samples, but got "
            f"{n} of {n + m}"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("embeddings must be finite, got NaN or infinity")
    return n, m
