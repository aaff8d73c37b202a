"""Does it matter which arm went first, and does the ratio move while one measures?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

SIGNIFICANT = 0.01
"""Level at which an order effect or a drift is reported as present."""
HOLD = 0.05
"""Level at which a drift keeps a trial from stopping early: a needless wait costs little."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An estimate on the log scale with its two-sided p-value (one look, at the end)."""

    estimate: float
    standard_error: float
    p_value: float

    @property
    def present(self) -> bool:
        return self.p_value < SIGNIFICANT


@dataclass(frozen=True, slots=True)
class Trend:
    """What the position of a pair explains of its log ratio; None where it cannot be told."""

    order: Effect | None
    """Mean log ratio with the baseline first, less that with the speculative arm first."""
    drift: Effect | None
    """Change of the log ratio from the first pair to the last."""

    @property
    def may_drift(self) -> bool:
        """Whether the pairs so far had better not speak for those to come."""
        return self.drift is not None and self.drift.p_value < HOLD


def trend_of(log_ratios: Sequence[float], baseline_first: Sequence[bool]) -> Trend:
    """Order effect and linear drift, estimated together by least squares.

    Formula: x_i = m + order * (+-1/2) + drift * (i - mean i) / (n - 1) + noise; t tests with
        n - 3 degrees of freedom (n - 2 when only one order occurred).
    Undefined: fewer than 5 pairs; `order` also when only one order occurred.
    Note: the tests assume independent noise; positively autocorrelated noise looks like drift.
    Raises: ValueError when the two sequences differ in length.
    """
    n = len(log_ratios)
    if n != len(baseline_first):
        raise ValueError(f"{n} log ratios, but {len(baseline_first)} orders: they must match")
    if n < 5:
        return Trend(None, None)
    both = 0 < sum(baseline_first) < n
    position = (np.arange(n) - (n - 1) / 2) / (n - 1)
    columns = [np.ones(n), position]
    if both:
        columns.append(np.where(np.asarray(baseline_first), 0.5, -0.5))
    design = np.stack(columns, axis=1)
    x = np.asarray(log_ratios, dtype=np.float64)
    normal = np.linalg.inv(design.T @ design)
    estimate = normal @ design.T @ x
    freedom = n - design.shape[1]
    residual = x - design @ estimate
    # Below rounding the residual is noise of the arithmetic, not of the measurement.
    variance = max(float(residual @ residual), 1e-24) / freedom
    effects = [
        _effect(float(estimate[i]), math.sqrt(variance * float(normal[i, i])), freedom)
        for i in range(1, design.shape[1])
    ]
    return Trend(order=effects[1] if both else None, drift=effects[0])


def _effect(estimate: float, error: float, freedom: int) -> Effect:
    return Effect(estimate, error, 2 * float(stdtr(freedom, -abs(estimate / error))))
