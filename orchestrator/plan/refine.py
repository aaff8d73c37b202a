"""Which loads to measure next, to close in on a knee or a break-even load."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CLOSE_ENOUGH = 1.15
"""A bracket whose ends are this close is not bisected further."""
RATE_DIGITS = 3
"""Rates are rounded to a number that a person would type."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """Something happens between two measured loads."""

    low: float
    high: float
    why: str
    """What is looked for: "knee of baseline", "break-even of speedup_tpot"."""

    def __post_init__(self) -> None:
        if not (0 < self.low < self.high and math.isfinite(self.high)):
            raise ValueError(
                f"bracket of {self.why}: `0 < low < high` must hold, "
                f"but got (low={self.low}, high={self.high})"
            )


@dataclass(frozen=True, slots=True)
class NextRung:
    """A load worth measuring, and what for."""

    load: float
    why: str


def next_rungs(
    measured: Sequence[float],
    brackets: Sequence[Bracket],
    *,
    whole: bool,
    rungs_left: int,
    close_enough: float = CLOSE_ENOUGH,
) -> tuple[NextRung, ...]:
    """The next loads of a ladder, at most one for every bracket; empty when there is no need.

    Rule: a bracket is cut, at the geometric middle, in its widest gap (on the log scale) between
        loads already measured. Not cut: a gap with high/low <= `close_enough`, or without room for
        a new load (neighbouring integers where loads are `whole`, as concurrency is).
        Every load lies strictly inside its bracket, is new, and is proposed once for all
        brackets that want it; earlier brackets first when `rungs_left` does not suffice for all.
    Ask again with the results, and `rungs_left` less what was measured: it ends, since gaps shrink.
    Raises: ValueError unless close_enough > 1.
    """
    if not close_enough > 1:
        raise ValueError(f"close_enough: must be > 1, but got {close_enough}")
    wanted: dict[float, list[str]] = {}
    for bracket in brackets:
        load = _cut(bracket, measured, whole=whole, close_enough=close_enough)
        if load is not None:
            wanted.setdefault(load, []).append(bracket.why)
    found = tuple(NextRung(load, "; ".join(dict.fromkeys(why))) for load, why in wanted.items())
    return found[: max(0, rungs_left)]


def _cut(
    bracket: Bracket, measured: Sequence[float], *, whole: bool, close_enough: float
) -> float | None:
    inside = sorted({load for load in measured if bracket.low < load < bracket.high})
    gaps = sorted(
        itertools.pairwise([bracket.low, *inside, bracket.high]),
        key=lambda gap: gap[0] / gap[1],
    )
    for low, high in gaps:
        if high / low <= close_enough:
            return None
        for middle in _middles(low, high, whole=whole):
            if low < middle < high:
                return middle
    return None


def _middles(low: float, high: float, *, whole: bool) -> Iterator[float]:
    middle = math.sqrt(low) * math.sqrt(high)
    if whole:
        yield float(min(max(round(middle), math.floor(low) + 1), math.ceil(high) - 1))
        return
    yield float(f"{middle:.{RATE_DIGITS}g}")
    yield middle
