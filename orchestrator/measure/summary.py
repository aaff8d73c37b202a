"""Mean and quantiles of a set of values, and their names with the unit last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

STATISTICS = ("mean", "p50", "p90", "p95", "p99")
_UNITS = ("tok_per_s", "bytes", "tokens", "rps", "hz", "s", "w", "j", "c")


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and quantiles (linear between order statistics) of `count` values."""

    count: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    def value(self, statistic: str) -> float:
        if statistic not in STATISTICS:
            raise KeyError(f"statistic must be one of {', '.join(STATISTICS)}, got {statistic!r}")
        return float(getattr(self, statistic))


def summarize(values: Iterable[float]) -> Summary | None:
    """Undefined: no values. Raises: ValueError when one of them is not a finite number."""
    array = np.fromiter(values, dtype=np.float64)
    if array.size == 0:
        return None
    if not np.isfinite(array).all():
        raise ValueError("a summary needs finite values, got NaN or infinity among them")
    p50, p90, p95, p99 = (float(q) for q in np.quantile(array, (0.5, 0.9, 0.95, 0.99)))
    return Summary(int(array.size), float(array.mean()), p50, p90, p95, p99)


def with_statistic(name: str, statistic: str) -> str:
    """The name of a statistic of `name`; the unit stays the suffix.

    >>> with_statistic("tpot_s", "p95"), with_statistic("gpu_power_w", "max")
    ('tpot_p95_s', 'gpu_power_max_w')
    >>> with_statistic("gpu_utilization", "mean")
    'gpu_utilization_mean'
    """
    for unit in _UNITS:
        if name.endswith("_" + unit):
            return f"{name[: -len(unit) - 1]}_{statistic}_{unit}"
    return f"{name}_{statistic}"
