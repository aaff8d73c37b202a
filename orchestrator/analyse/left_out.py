"""Predicted speedup for speculation lengths and batch sizes that were not measured.

Two things are predicted, both over (K, batch): tokens per step, which draft and text decide, and
AL*, which the machine decides. Their ratio is the speedup. Only inside what was measured, with
an interval; and each measured cell is predicted from the others, which shows what it is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GridCell:
    """What was measured of one speculation length at one batch size."""

    speculation_length: int
    batch: int
    tokens_per_step: float
    break_even_acceptance_length: float
    speedup: float | None
    """Measured, of TPOT."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of a cell, from others."""

    speculation_length: int
    batch: int
    tokens_per_step: float
    break_even_acceptance_length: float
    speedup: float
    low: float
    high: float
    measured: float | None
    """The speedup that was measured there, where the cell was left out to check."""

    @property
    def error(self) -> float | None:
        """Relative: predicted / measured - 1."""
        return None if self.measured is None else self.speedup / self.measured - 1


def predictions(cells: Sequence[GridCell], *, confidence: float) -> list[Prediction]:
    """For every K and batch size (powers of two, and those measured) between those measured.

    Undefined: empty where the grid has too few cells for an interval (see `_fit`).
    """
    model = _fit(cells)
    if model is None:
        return []
    lengths = [cell.speculation_length for cell in cells]
    batches = [cell.batch for cell in cells]
    powers = [2**n for n in range(max(batches).bit_length())]
    known = {(cell.speculation_length, cell.batch) for cell in cells}
    return [
        model.at(length, batch, confidence, None)
        for length in range(min(lengths), max(lengths) + 1)
        for batch in sorted({*powers, *batches})
        if min(batches) <= batch <= max(batches) and (length, batch) not in known
    ]


def left_out(cells: Sequence[GridCell], *, confidence: float) -> list[Prediction]:
    """Each measured cell as the others predict it, where they surround it.

    A corner of the grid is outside of what remains when it is left out, so it is not predicted.
    """
    found = []
    for index, cell in enumerate(cells):
        others = [*cells[:index], *cells[index + 1 :]]
        model = _fit(others)
        if model is None or cell.speedup is None or not _inside(cell, others):
            continue
        found.append(model.at(cell.speculation_length, cell.batch, confidence, cell.speedup))
    return found


def _inside(cell: GridCell, others: Sequence[GridCell]) -> bool:
    """Between others of its row or of its column."""
    row = [o.batch for o in others if o.speculation_length == cell.speculation_length]
    column = [o.speculation_length for o in others if o.batch == cell.batch]
    along = bool(row) and min(row) < cell.batch < max(row)
    across = bool(column) and min(column) < cell.speculation_length < max(column)
    return along or across


class _Model:
    """Least squares of log tokens per step and log AL* on K, log batch and their product.

    Formula: log y = c0 + c1 log(1 + K) + c2 log2 b + c3 K log2 b, a term only where the cells have
        two levels of what it holds; the interval of a prediction is Student's, with the residuals'
        variance and the leverage of the point, the two variances added.
    """

    def __init__(self, cells: Sequence[GridCell]) -> None:
        self._lengths = len({cell.speculation_length for cell in cells}) > 1
        self._batches = len({cell.batch for cell in cells}) > 1
        x = np.array([self._terms(cell.speculation_length, cell.batch) for cell in cells])
        self.freedom = len(cells) - int(np.linalg.matrix_rank(x))
        self._inverse = np.linalg.pinv(x.T @ x)
        self._parts = [
            self._part(x, np.log([cell.tokens_per_step for cell in cells])),
            self._part(x, np.log([cell.break_even_acceptance_length for cell in cells])),
        ]

    def _terms(self, length: int, batch: int) -> list[float]:
        terms = [1.0]
        if self._lengths:
            terms.append(math.log1p(length))
        if self._batches:
            terms.append(math.log2(batch))
        if self._lengths and self._batches:
            terms.append(length * math.log2(batch))
        return terms

    def _part(self, x: Array, y: Array) -> tuple[Array, float]:
        coefficients: Array = self._inverse @ x.T @ y
        residual = y - x @ coefficients
        return coefficients, float(residual @ residual) / max(1, self.freedom)

    def at(self, length: int, batch: int, confidence: float, measured: float | None) -> Prediction:
        x = np.array(self._terms(length, batch))
        leverage = 1 + float(x @ self._inverse @ x)
        (tokens, spread), (needed, other) = self._parts
        mean = float(x @ tokens - x @ needed)
        reach = float(stats.t.ppf((1 + confidence) / 2, self.freedom))
        half = reach * math.sqrt(leverage * (spread + other))
        return Prediction(
            speculation_length=length,
            batch=batch,
            tokens_per_step=math.exp(float(x @ tokens)),
            break_even_acceptance_length=math.exp(float(x @ needed)),
            speedup=math.exp(mean),
            low=math.exp(mean - half),
            high=math.exp(mean + half),
            measured=measured,
        )


def _fit(cells: Sequence[GridCell]) -> _Model | None:
    """None unless a residual is left to judge by, beside at least two levels of K or of batch."""
    if len({(cell.speculation_length, cell.batch) for cell in cells}) < 3:
        return None
    model = _Model(cells)
    return model if model.freedom >= 1 else None
