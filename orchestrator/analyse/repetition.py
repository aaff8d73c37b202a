"""Does an answer go round in circles?"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

LONGEST_PERIOD = 64
"""Loops with a longer period than this many words are not looked for."""
COMPRESSIBLE_BYTES = 200
"""Below this, zlib's own overhead decides the ratio."""


@dataclass(frozen=True, slots=True)
class Loop:
    """The stretch of an answer that repeats itself most: `length` words with period `period`."""

    period: int
    length: int
    start: int

    @property
    def repeats(self) -> float:
        return self.length / self.period


def distinct_n(units: Sequence[Hashable], n: int) -> float | None:
    """Share of n-grams that are different from each other.

    Formula: different n-grams / n-grams. Unit: 0 to 1; lower = more repetitive.
    Undefined: None for fewer than n units.
    Raises: ValueError for n < 1.
    Source: Li et al. 2016, "A diversity-promoting objective function", NAACL.
    """
    if n < 1:
        raise ValueError(f"n: must be >= 1, got {n}")
    grams = [tuple(units[i : i + n]) for i in range(len(units) - n + 1)]
    return len(set(grams)) / len(grams) if grams else None


def longest_loop(units: Sequence[Hashable], *, longest_period: int = LONGEST_PERIOD) -> Loop | None:
    """The longest stretch that consists of one block said at least twice in a row.

    Formula: over periods p, the longest run of i with unit[i] = unit[i + p]; a run of r >= p makes
        a stretch of r + p. The longest stretch wins, then the shortest period.
    Undefined: None when nothing is said twice in a row.
    """
    index: dict[Hashable, int] = {}
    codes = np.array([index.setdefault(unit, len(index)) for unit in units], dtype=np.intp)
    best: Loop | None = None
    for period in range(1, min(longest_period, len(codes) // 2) + 1):
        start, run = _longest_run(codes[:-period] == codes[period:])
        if run >= period and (best is None or run + period > best.length):
            best = Loop(period, run + period, start)
    return best


def loop_share(units: Sequence[Hashable]) -> float | None:
    """Share of an answer inside its longest loop of at least three repeats. Undefined: no units.

    Two repeats are ordinary ("very very", a line said again); three in a row are not.
    """
    if not units:
        return None
    loop = longest_loop(units)
    return loop.length / len(units) if loop is not None and loop.repeats >= 3 else 0.0


def compression_ratio(text: str) -> float | None:
    """How far zlib shrinks the text: plain prose 1.5 to 3, a loop far more.

    Formula: UTF-8 bytes / bytes after zlib (level 9).
    Undefined: None below 200 bytes.
    """
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) < COMPRESSIBLE_BYTES:
        return None
    return len(raw) / len(zlib.compress(raw, 9))


def _longest_run(equal: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[int, int]:
    """Where the longest run of True begins, and its length."""
    edges = np.diff(np.concatenate([[0], equal.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not starts.size:
        return 0, 0
    longest = int((ends - starts).argmax())
    return int(starts[longest]), int(ends[longest] - starts[longest])
