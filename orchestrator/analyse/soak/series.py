"""A figure over time, of one arm: made even and thinned, and freed of what the load explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.analyse.soak.rank_trend import FloatArray, IntArray

POINTS_MOST = 120
"""Blocks of neighbours become one: enough for any trend, and all pairs of them are few."""
LOAD_VARIES = 0.03
"""Spread of the load over its mean above which the load is taken out."""
CONFOUNDED = 0.5
"""Share of time's own spread that the load explains above which the two cannot be told apart."""


@dataclass(frozen=True)
class Series:
    """Equal lengths; `at_h` ascending, hours since the soak began; `life` numbers engine starts."""

    at_h: FloatArray
    values: FloatArray
    load: FloatArray
    life: IntArray

    @staticmethod
    def of(
        at_h: Sequence[float],
        values: Sequence[float | None],
        load: Sequence[float] | None = None,
        life: Sequence[int] | None = None,
    ) -> Series:
        """What is None or not finite is left out."""
        x = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        kept = np.isfinite(x)
        loads = np.ones(x.size) if load is None else np.asarray(load, dtype=np.float64)
        lives = np.zeros(x.size, np.int64) if life is None else np.asarray(life, np.int64)
        times = np.asarray(at_h, dtype=np.float64)
        return Series(times[kept], x[kept], loads[kept], lives[kept])

    @property
    def points(self) -> int:
        return int(self.at_h.size)

    @property
    def hours(self) -> float:
        """From the first point to the last."""
        return float(self.at_h[-1] - self.at_h[0]) if self.points else 0.0

    def where(self, mask: NDArray[np.bool_]) -> Series:
        return Series(self.at_h[mask], self.values[mask], self.load[mask], self.life[mask])


def settled(series: Series, share: float = 0.1) -> Series:
    """Without the first tenth of every life: caches fill and allocators reach their size."""
    kept = np.ones(series.points, dtype=bool)
    for life in np.unique(series.life):
        places = np.flatnonzero(series.life == life)
        kept[places[: int(np.ceil(share * places.size))]] = False
    return series.where(kept)


def thinned(series: Series, most: int = POINTS_MOST) -> Series:
    """At most about `most` points: medians of so many neighbours, never across two lives."""
    step = -(-series.points // most)
    if step <= 1:
        return series
    rows = []
    for life in np.unique(series.life):
        places = np.flatnonzero(series.life == life)
        for start in range(0, places.size - step + 1, step):
            block = places[start : start + step]
            rows.append(
                (
                    series.at_h[block].mean(),
                    np.median(series.values[block]),
                    series.load[block].mean(),
                    life,
                )
            )
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return Series(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.int64))


def without_load(series: Series) -> Series | None:
    """The series as it would be at its mean load.

    Formula: x = a_life + b t + c1 L + c2 L^2 by least squares; x - c1 (L - mean) - c2 (L^2 - mean).
    Undefined: None where load and time cannot be told apart (less than a period of it was seen).
    """
    load = series.load
    mean = float(load.mean()) if series.points else 0.0
    if mean == 0 or float(load.std()) / mean < LOAD_VARIES:
        return series
    lives = np.unique(series.life)
    levels = np.stack([series.life == life for life in lives], axis=1).astype(np.float64)
    scaled = load / mean
    loads = np.stack([scaled, scaled * scaled], axis=1)
    time = series.at_h - series.at_h.mean()
    if series.points < 4 * (2 + lives.size):
        return None
    of_time = _left(np.hstack([levels, loads]), time)
    spread = float(np.sum(_left(levels, time) ** 2))
    if spread == 0 or 1 - float(np.sum(of_time**2)) / spread > CONFOUNDED:
        return None
    design = np.hstack([levels, time[:, None], loads])
    found = np.linalg.lstsq(design, series.values, rcond=None)[0][-2:]
    return replace(series, values=series.values - (loads - loads.mean(axis=0)) @ found)


def _left(design: FloatArray, of: FloatArray) -> FloatArray:
    """What least squares on `design` leaves of a series."""
    return np.asarray(of - design @ np.linalg.lstsq(design, of, rcond=None)[0], dtype=np.float64)
