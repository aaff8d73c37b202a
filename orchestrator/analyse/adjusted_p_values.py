"""p-values that allow for how many questions were asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values that keep the chance of any false alarm, whatever the dependence.

    Formula, p sorted ascending, m of them: max over j <= k of min(1, (m − j + 1) · p_(j))
    Raises: ValueError for a p-value outside [0, 1].
    Source: Holm 1979, Scandinavian Journal of Statistics 6.
    """
    p, order = _sorted(p_values)
    m = p.size
    adjusted = np.minimum(1.0, np.maximum.accumulate((m - np.arange(m)) * p))
    return _back(adjusted, order)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values that keep the expected share of false alarms among the alarms.

    Formula, p sorted ascending, m of them: min over j >= k of min(1, m · p_(j) / j)
    Valid for independent and positively dependent tests.
    Raises: ValueError for a p-value outside [0, 1].
    Source: Benjamini & Hochberg 1995, JRSS B 57.
    """
    p, order = _sorted(p_values)
    m = p.size
    scaled = m * p / np.arange(1, m + 1)
    adjusted = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return _back(adjusted, order)


def _sorted(p_values: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    p = np.asarray(p_values, dtype=np.float64)
    if not bool(np.all((p >= 0) & (p <= 1))):
        raise ValueError(f"p-values: `0 <= p <= 1` must hold, but got {list(p_values)}")
    order = np.argsort(p, kind="stable")
    return p[order], order


def _back(adjusted: NDArray[np.float64], order: NDArray[np.intp]) -> tuple[float, ...]:
    result = np.empty_like(adjusted)
    result[order] = adjusted
    return tuple(result.tolist())
