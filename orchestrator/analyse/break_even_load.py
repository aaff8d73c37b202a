"""The load at which speculation stops paying (or begins to): where the speedup crosses 1."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.analyse.rung import Rung, in_order
from orchestrator.plan.refine import Bracket


@dataclass(frozen=True, slots=True)
class Crossing:
    """The speedup crosses 1 between two rungs whose intervals lie on different sides of it."""

    load: float
    low: float
    high: float
    direction: Literal["falling", "rising"]
    """falling: speculation pays below this load; rising: above it."""
    between: tuple[float, float]
    """The two rungs; others between them, whose intervals contain 1, do not resolve it further."""


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Break-even load of one metric; `load` is None unless there is exactly one crossing."""

    metric: str
    crossings: tuple[Crossing, ...]
    unresolved: tuple[tuple[float, float], ...]
    """Ranges in which the speedup may cross 1, but the intervals contain 1."""
    why: str
    notes: tuple[str, ...] = ()

    @property
    def load(self) -> float | None:
        return self.crossings[0].load if len(self.crossings) == 1 else None

    @property
    def low(self) -> float | None:
        return self.crossings[0].low if len(self.crossings) == 1 else None

    @property
    def high(self) -> float | None:
        return self.crossings[0].high if len(self.crossings) == 1 else None

    @property
    def crossing_brackets(self) -> tuple[Bracket, ...]:
        """Where measuring more narrows a crossing down."""
        return self._brackets([crossing.between for crossing in self.crossings])

    @property
    def unresolved_brackets(self) -> tuple[Bracket, ...]:
        """Where measuring more may find one."""
        return self._brackets(self.unresolved)

    def _brackets(self, ranges: Iterable[tuple[float, float]]) -> tuple[Bracket, ...]:
        return tuple(Bracket(*ends, f"break-even of {self.metric}") for ends in ranges)


@dataclass(frozen=True, slots=True)
class _Point:
    load: float
    log_value: float
    log_low: float
    log_high: float

    @property
    def side(self) -> int:
        """1: the whole interval above a speedup of 1; -1: below; 0: it contains 1."""
        return (self.log_low > 0) - (self.log_high < 0)


def break_even_load(rungs: Iterable[Rung], metric: str) -> BreakEven:
    """Where the speedup crosses 1, with an interval; never outside the measured loads.

    Formula: between neighbouring rungs whose intervals lie on different sides of 1, the log of the
        speedup is taken as linear in the log of the load, and its zero is the load. Its interval
        is where the lower and the upper ends of the rungs' intervals, joined in the same way, cross
        1. Rungs between whose intervals contain 1 are joined in; they widen the interval.
    Unit: of the load, requests in flight or 1/s
    Undefined (None): no crossing, not resolved, or several (they are listed).
    """
    ordered = in_order(rungs)
    points = [
        _Point(rung.offered, math.log(s.value), math.log(s.low), math.log(s.high))
        for rung in ordered
        if (s := rung.speedups.get(metric)) is not None and s.low > 0
    ]
    told = [i for i, point in enumerate(points) if point.side]
    if not points:
        return BreakEven(metric, (), (), f"no rung has a {metric}")
    if not told:
        ends = (points[0].load, points[-1].load)
        where = f"at {ends[0]:g}" if len(points) == 1 else f"between {ends[0]:g} and {ends[1]:g}"
        return BreakEven(metric, (), (), f"no rung is told from 1 {where}: all intervals contain 1")
    crossings = tuple(
        _crossing(points[i : j + 1])
        for i, j in itertools.pairwise(told)
        if points[i].side != points[j].side
    )
    unresolved = _unresolved(points, told)
    why = _why(points, told, crossings, unresolved)
    return BreakEven(metric, crossings, unresolved, why, tuple(_notes(ordered, crossings)))


def _crossing(points: Sequence[_Point]) -> Crossing:
    """`points` go from one side to the other, with none but unresolved ones between."""
    # Seen as falling: a rising speedup is the falling one of the arms exchanged.
    sign = points[0].side
    x = [math.log(point.load) for point in points]
    inner, outer = [
        [sign * (p.log_low if (sign > 0) is lower else p.log_high) for p in points]
        for lower in (True, False)
    ]
    middle = _zeros(x, [sign * point.log_value for point in points])
    return Crossing(
        load=math.exp(middle[len(middle) // 2]),
        low=math.exp(_zeros(x, inner)[0]),
        high=math.exp(_zeros(x, outer)[-1]),
        direction="falling" if sign > 0 else "rising",
        between=(points[0].load, points[-1].load),
    )


def _zeros(x: Sequence[float], y: Sequence[float]) -> list[float]:
    """Where the line through the points goes through 0; y begins above 0 and ends below."""
    return [
        x0 + (x1 - x0) * y0 / (y0 - y1)
        for (x0, y0), (x1, y1) in itertools.pairwise(zip(x, y, strict=True))
        if (y0 > 0) != (y1 > 0)
    ]


def _unresolved(points: Sequence[_Point], told: Sequence[int]) -> tuple[tuple[float, float], ...]:
    """Loads next to which nothing is told: below the first rung that is, and above the last."""
    ranges = []
    if told[0] > 0:
        ranges.append((points[0].load, points[told[0]].load))
    if told[-1] < len(points) - 1:
        ranges.append((points[told[-1]].load, points[-1].load))
    return tuple(ranges)


def _why(
    points: Sequence[_Point],
    told: Sequence[int],
    crossings: Sequence[Crossing],
    unresolved: Sequence[tuple[float, float]],
) -> str:
    if len(crossings) > 1:
        where = ", ".join(f"{c.load:.3g} ({c.direction})" for c in crossings)
        return f"the speedup crosses 1 more than once: {where}"
    if crossings:
        only = crossings[0]
        pays = "below" if only.direction == "falling" else "above"
        return f"speculation pays {pays} {only.load:.3g} [{only.low:.3g}, {only.high:.3g}]"
    if unresolved:
        where = ", ".join(f"between {low:g} and {high:g}" for low, high in unresolved)
        return f"crossing not resolved {where}: intervals contain 1"
    outcome = "wins" if points[told[0]].side > 0 else "loses"
    if len(told) == len(points):
        return f"speculation {outcome} at every measured load"
    return f"speculation {outcome} at every load that is told from 1; none shows the other side"


def _notes(ordered: Sequence[Rung], crossings: Sequence[Crossing]) -> Iterable[str]:
    for rung in ordered:
        used = any(c.between[0] <= rung.offered <= c.between[1] for c in crossings)
        arms = [arm for arm, at in rung.arms.items() if at.saturated]
        if used and arms:
            yield (
                f"{rung.load.label()} is saturated ({' and '.join(arms)}): the speedup there "
                "depends on how long one measures"
            )
