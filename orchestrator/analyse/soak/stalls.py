"""Moments in which an arm stood still, and whether they come by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analyse.soak.series import Series

TIMES_USUAL = 5.0
"""A gap between chunks is a stall when it is so many times the usual longest gap of a window …"""
SECONDS_MORE = 0.5
"""… and so much longer."""
REGULAR = 0.25
"""Spread of the intervals over their mean below which stalls come by the clock."""
REGULAR_MIN = 4
"""Stalls: three intervals."""


@dataclass(frozen=True, slots=True)
class Stalls:
    at_h: tuple[float, ...]
    longest_s: float
    period_h: float | None
    """None: they come at no fixed interval, or are too few to tell."""


def stalls_of(longest_gaps: Series) -> Stalls | None:
    """The windows whose longest gap stands out; None where none does.

    Neighbouring windows are one stall: the first of them counts.
    """
    x = longest_gaps.values
    if x.size < 3:
        return None
    usual = float(np.median(x))
    out = np.flatnonzero(x > max(TIMES_USUAL * usual, usual + SECONDS_MORE))
    if out.size == 0:
        return None
    firsts = out[np.concatenate([[True], np.diff(out) > 1])]
    times = longest_gaps.at_h[firsts]
    return Stalls(tuple(map(float, times)), float(x[out].max()), _period(times))


def _period(
    times: Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> float | None:
    if len(times) < REGULAR_MIN:
        return None
    gaps = np.diff(np.asarray(times))
    mean = float(gaps.mean())
    return mean if mean > 0 and float(gaps.std()) / mean < REGULAR else None
