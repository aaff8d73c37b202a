"""Where a series jumps from one level to another."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from orchestrator.analyse.soak.rank_trend import FloatArray, variance_inflation
from orchestrator.analyse.soak.series import Series

SEGMENT_MIN = 5
"""Points of a level, at least."""
SIGMAS = 5.0
"""A step is kept when it is so many standard errors of the two levels' difference."""
SPREADS = 1.5
"""… and so many times what is left of the series around its levels."""
INFLATION_MIN = 3.0
"""Levels that follow the noise hide its memory: at least that of an AR(1) with 0.5."""
MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class Step:
    """One change of level."""

    at_h: float
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


def steps_of(series: Series) -> tuple[Step, ...]:
    """Changes of level that a straight line does not explain as well.

    Optimal partition by least squares (PELT's kernel form in `ruptures`) with a penalty of
    3 ln(n) times the variance of the noise, as far as its neighbours tell; a step that is less than
    five standard errors (autocorrelation counted), or 1.5 of what is left, is taken back; and where
    a straight line leaves no more than the levels do, there is a trend and no step.
    Undefined: none with fewer than 3 x 5 points, or without spread.
    Source: Killick, Fearnhead & Eckley 2012, J. Am. Stat. Assoc. 107; Truong et al. 2020, Signal
        Processing 167 (ruptures).
    """
    x = series.values
    if x.size < 3 * SEGMENT_MIN:
        return ()
    changes = np.diff(x)
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(changes - np.median(changes)))) / math.sqrt(2)
    if sigma == 0:
        sigma = float(np.std(changes)) / math.sqrt(2)
    if sigma == 0:
        return ()
    import ruptures  # seconds of import: only where there is a series to be cut

    cut = ruptures.KernelCPD(kernel="linear", min_size=SEGMENT_MIN)
    ends = cut.fit((x / sigma).reshape(-1, 1)).predict(pen=3 * math.log(x.size))
    edges = _kept(x, [0, *ends])
    levels = [float(np.mean(x[a:b])) for a, b in itertools.pairwise(edges)]
    if len(levels) < 2 or _line_is_as_good(series, edges):
        return ()
    return tuple(
        Step(float(series.at_h[edge]), before, after)
        for edge, before, after in zip(edges[1:-1], levels, levels[1:], strict=False)
    )


def _kept(x: FloatArray, edges: list[int]) -> list[int]:
    """Without the steps that are too small for their noise, the smallest first."""
    while len(edges) > 2:
        residuals = np.concatenate([x[a:b] - x[a:b].mean() for a, b in _pairs(edges)])
        spread = float(np.std(residuals))
        variance = spread**2 * max(INFLATION_MIN, variance_inflation(residuals))
        scores = []
        for a, middle, b in zip(edges, edges[1:], edges[2:], strict=False):
            gap = abs(float(x[a:middle].mean() - x[middle:b].mean()))
            error = math.sqrt(variance * (1 / (middle - a) + 1 / (b - middle)))
            small = gap < SPREADS * spread
            scores.append(0.0 if small else gap / error if error > 0 else math.inf)
        least = int(np.argmin(scores))
        if scores[least] >= SIGMAS:
            break
        edges = [*edges[: least + 1], *edges[least + 2 :]]
    return edges


def _line_is_as_good(series: Series, edges: list[int]) -> bool:
    """By Schwarz's criterion: a line has 2 parameters, k levels have 2k - 1."""
    x, n = series.values, series.points
    line = np.polyval(np.polyfit(series.at_h, x, 1), series.at_h)
    flat = np.concatenate([np.full(b - a, x[a:b].mean()) for a, b in _pairs(edges)])
    left_line, left_flat = (float(np.sum((x - fit) ** 2)) for fit in (line, flat))
    if left_flat == 0:
        return left_line == 0
    levels = len(edges) - 1
    return n * math.log(max(left_line, 1e-300) / left_flat) <= (2 * levels - 3) * math.log(n)


def _pairs(edges: list[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(edges))
