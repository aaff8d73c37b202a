"""Live traffic of two arms, as a switch would see it, with faults planted at known times.

Nothing is measured: it is arithmetic for testing the guard. It has what makes guarding hard: load
and mix that follow the day, topics that last for minutes, latencies with heavy tails, slow spells
and outages that hit both arms, hiccups that hit one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestrator.switch.observation import ArmName, Observation

DAY_S = 86_400.0
GRID_S = 5.0
"""Circumstances change in steps of this."""
SPAN_S = 3_600.0

FaultKind = Literal["acceptance", "ttft", "tpot", "errors", "mismatch", "repetition"]
FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """What becomes of the speculative arm between two times.

    `size`: factor on acceptance, `ttft` and `tpot`; else the share of requests that it befalls.
    """

    kind: FaultKind
    from_s: float
    size: float
    until_s: float = math.inf
    category: str | None = None
    both_arms: bool = False

    def holds(self, at_s: float, arm: ArmName, category: str) -> bool:
        return (
            self.from_s <= at_s < self.until_s
            and (self.both_arms or arm == "speculative")
            and self.category in (None, category)
        )


@dataclass(frozen=True, slots=True)
class CategoryShape:
    """One kind of prompt: its part of the traffic and its acceptance."""

    name: str
    weight: float
    acceptance: float
    spread: float = 0.12
    """Standard deviation between requests."""


CATEGORIES = (
    CategoryShape("chat", 0.3, 0.55),
    CategoryShape("code", 0.25, 0.72),
    CategoryShape("summary", 0.2, 0.65),
    CategoryShape("extraction", 0.1, 0.8, 0.08),
    CategoryShape("translation", 0.1, 0.5),
    CategoryShape("fiction", 0.05, 0.38, 0.15),
)


@dataclass(frozen=True)
class TrafficShape:
    """Rates and latencies when nothing is wrong. Mean rate over a day: `rate_rps`."""

    rate_rps: float = 2.0
    share: float = 0.5
    """Of requests that the speculative arm answers."""
    shadow_share: float = 0.05
    """Of the baseline's requests that are mirrored and compared."""
    swing: float = 0.6
    """The rate goes from 1 - swing to 1 + swing of its mean in a day."""
    categories: Sequence[CategoryShape] = CATEGORIES
    ttft_s: float = 0.15
    tpot_s: float = 0.03
    speedup_tpot: float = 1.4
    error_rate: float = 0.002
    mismatch_rate: float = 0.12
    repetitive_rate: float = 0.01
    slow_spells_per_day: float = 12.0
    """Both arms, 20 s, three times as slow."""
    hiccups_per_day: float = 6.0
    """One arm, 8 s, three times as slow."""
    outages_per_day: float = 0.33
    """Both arms, 60 s, half of the requests fail."""
    faults: Sequence[PlantedFault] = field(default=())


@dataclass(frozen=True, slots=True)
class _Span:
    """Circumstances of an hour on a grid of GRID_S."""

    slowness: dict[ArmName, FloatArray]
    failing: FloatArray
    topics: dict[str, FloatArray]
    """Added to a category's acceptance."""


class LiveTraffic:
    """Observations in the order in which requests end. The generator's state is its own."""

    def __init__(self, shape: TrafficShape, random: np.random.Generator) -> None:
        self._shape = shape
        self._random = random
        self._span: _Span | None = None
        self._span_began_s = -math.inf
        self._noise = {c.name: 0.0 for c in shape.categories} | {"": 0.0}
        self._running: list[tuple[float, int, Observation]] = []
        self._order = count()
        # Drawn in thousands: one by one they would cost more than all the rest.
        self._uniform = _one_by_one(lambda: random.random(4096)).__next__
        self._normal = _one_by_one(lambda: random.standard_normal(4096)).__next__

    def between(
        self,
        from_s: float,
        until_s: float,
        *,
        share: Callable[[str], float] | None = None,
        mirrored: Callable[[str], float] | None = None,
    ) -> Iterator[Observation]:
        """What ends in [from_s, until_s); call it for one stretch after the other.

        `share` and `mirrored`: by category, what goes to the speculative arm, and what of the rest
        is mirrored; default: as the shape says.
        """
        for at_s in self._arrivals(from_s, until_s):
            for seen in self._request(at_s, share, mirrored):
                heapq.heappush(self._running, (seen.at_s, next(self._order), seen))
        while self._running and self._running[0][0] < until_s:
            yield heapq.heappop(self._running)[2]

    def _arrivals(self, from_s: float, until_s: float) -> FloatArray:
        """A Poisson process whose rate follows the day, by thinning."""
        shape = self._shape
        most = shape.rate_rps * (1 + shape.swing)
        at_s = self._random.uniform(
            from_s, until_s, self._random.poisson(most * (until_s - from_s))
        )
        kept = self._random.random(len(at_s)) * (1 + shape.swing) < self._day(at_s)
        return np.sort(at_s[kept])

    def _day(self, at_s: FloatArray) -> FloatArray:
        return np.asarray(1 - self._shape.swing * np.cos(2 * np.pi * at_s / DAY_S), np.float64)

    def _request(
        self,
        at_s: float,
        share: Callable[[str], float] | None,
        mirrored: Callable[[str], float] | None,
    ) -> Iterator[Observation]:
        category = self._category(at_s)
        part = self._shape.share if share is None else share(category.name)
        also = self._shape.shadow_share if mirrored is None else mirrored(category.name)
        draw = self._uniform
        if draw() < part:
            yield self._answer(at_s, "speculative", category, mirrored=False)
        else:
            yield self._answer(at_s, "baseline", category, mirrored=False)
            if draw() < also:
                yield self._answer(at_s, "speculative", category, mirrored=True)

    def _category(self, at_s: float) -> CategoryShape:
        """The mix turns with the day: each category has its own hour."""
        shapes = self._shape.categories
        turn = 2 * math.pi * at_s / DAY_S
        weights = [
            c.weight * (1 + 0.5 * math.cos(turn - 2 * math.pi * i / len(shapes)))
            for i, c in enumerate(shapes)
        ]
        at = self._uniform() * sum(weights)
        for shape, weight in zip(shapes, weights, strict=True):
            at -= weight
            if at < 0:
                return shape
        return shapes[-1]

    def _answer(
        self, at_s: float, arm: ArmName, category: CategoryShape, *, mirrored: bool
    ) -> Observation:
        span, step = self._circumstances(at_s)
        draw, normal = self._uniform, self._normal
        sizes = {f.kind: f.size for f in self._shape.faults if f.holds(at_s, arm, category.name)}
        if draw() < max(self._shape.error_rate, span.failing[step], sizes.get("errors", 0.0)):
            return Observation(
                at_s + 0.05, arm, category=category.name, error="http_500", mirrored=mirrored
            )
        load = float(span.slowness[arm][step])
        tokens = max(2, int(80 * math.exp(0.6 * normal())))
        ttft_s = self._shape.ttft_s * load * math.exp(0.45 * normal()) * sizes.get("ttft", 1.0)
        tpot_s = self._shape.tpot_s * load * math.exp(0.15 * normal()) * sizes.get("tpot", 1.0)
        speculates = arm == "speculative"
        if speculates:
            tpot_s /= self._shape.speedup_tpot
        e2e_s = ttft_s + tpot_s * (tokens - 1)
        drafts = drafted = accepted = None
        if speculates:
            rate = category.acceptance + float(span.topics[category.name][step])
            rate = min(max(rate + category.spread * normal(), 0.02), 0.98)
            rate *= sizes.get("acceptance", 1.0)
            drafts = max(1, int(tokens / (1 + 4 * rate)))
            drafted = 4 * drafts
            accepted = int(self._random.binomial(drafted, rate))
        unequal = sizes.get("mismatch", self._shape.mismatch_rate)
        repetitive = draw() < sizes.get("repetition", self._shape.repetitive_rate)
        return Observation(
            at_s=at_s + e2e_s,
            arm=arm,
            category=category.name,
            ttft_s=ttft_s,
            tpot_s=tpot_s,
            e2e_s=e2e_s,
            output_tokens=tokens,
            drafts=drafts,
            draft_tokens=drafted,
            accepted_tokens=accepted,
            shadow_equal=bool(draw() >= unequal) if mirrored else None,
            repetition=0.8 if repetitive else 0.1 * draw(),
            mirrored=mirrored,
        )

    def _circumstances(self, at_s: float) -> tuple[_Span, int]:
        if self._span is None or not 0 <= at_s - self._span_began_s < SPAN_S:
            self._span_began_s = SPAN_S * (at_s // SPAN_S)
            self._span = self._new_span()
        return self._span, int((at_s - self._span_began_s) / GRID_S)

    def _new_span(self) -> _Span:
        steps = int(SPAN_S / GRID_S)
        at_s = self._span_began_s + GRID_S * np.arange(steps, dtype=np.float64)
        shared = np.exp(self._wander("", 0.15, 600.0, steps) + 0.2 * (self._day(at_s) - 1))
        shared = shared * self._spells(self._shape.slow_spells_per_day, 20.0, 3.0, steps)
        slowness: dict[ArmName, FloatArray] = {}
        arms: tuple[ArmName, ...] = ("baseline", "speculative")
        for arm in arms:
            slowness[arm] = shared * self._spells(self._shape.hiccups_per_day, 8.0, 3.0, steps)
        return _Span(
            slowness=slowness,
            failing=(self._spells(self._shape.outages_per_day, 60.0, 2.0, steps) - 1) * 0.5,
            topics={
                c.name: self._wander(c.name, 0.4 * c.spread, 120.0, steps)
                for c in self._shape.categories
            },
        )

    def _wander(self, name: str, spread: float, memory_s: float, steps: int) -> FloatArray:
        """Autoregressive noise that goes on where the hour before ended."""
        kept = math.exp(-GRID_S / memory_s)
        fresh = spread * math.sqrt(1 - kept**2) * self._random.standard_normal(steps)
        value, path = self._noise[name], np.empty(steps)
        for step in range(steps):
            value = kept * value + fresh[step]
            path[step] = value
        self._noise[name] = value
        return path

    def _spells(self, per_day: float, long_s: float, size: float, steps: int) -> FloatArray:
        """1, but `size` during spells that begin at random."""
        path = np.ones(steps)
        begins = self._random.random(steps) < per_day * GRID_S / DAY_S
        for step in np.flatnonzero(begins):
            path[step : step + max(1, round(long_s / GRID_S))] = size
        return path


def _one_by_one(draw: Callable[[], FloatArray]) -> Iterator[float]:
    while True:
        yield from draw().tolist()
