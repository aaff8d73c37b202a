"""Acceptance as the guard tests it: against a floor, and against what has been usual."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from orchestrator.switch.guard.check import Check
from orchestrator.switch.guard.settings import AcceptanceLimits
from orchestrator.switch.guard.usual import Usual

LINES = (0.2, 0.4, 0.6, 0.8)
"""Quantiles of what is usual at which a drop is looked for: narrow distributions show it at the low
ones, wide ones at the high ones."""
NO_CATEGORY = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Of requests as usual, at most the share `allowed` lies below `at` even after a fall to
    `drop_to`."""

    at: float
    allowed: float


class UsualAcceptance:
    """What is usual in one category, and the lines that follow."""

    def __init__(self, limits: AcceptanceLimits) -> None:
        self._limits = limits
        self.distribution = Usual(limits.half_life_s)
        self._lines: tuple[Line, ...] = ()
        self._learned: list[float] = []
        self._stale = 0

    @property
    def lines(self) -> tuple[Line, ...]:
        """Empty until `learn_requests` are known, or where no drop is a breach."""
        return self._lines

    def learn(self, rate: float) -> None:
        self._learned.append(rate)

    def close(self, at_s: float, *, suspected: bool) -> None:
        """Takes the round's rates in, unless a drop is suspected: a fall is not to become usual."""
        if self._learned and not suspected:
            self.distribution.add(at_s, self._learned)
            self._stale += len(self._learned)
            # Quantiles that rest on as much do not move with every request.
            if not self._lines or self._stale > 0.02 * self.distribution.weight:
                self.refresh()
        self._learned = []

    def refresh(self) -> None:
        """Formula: at = drop_to * Q(q); allowed = q + 1.5 sqrt(q (1 - q) / weight), for the error
        of the quantile, in whole per cent. If acceptance is at least drop_to of the usual in
        distribution, then P(rate < drop_to * Q(q)) <= q.
        """
        self._stale = 0
        weight, drop_to = self.distribution.weight, self._limits.drop_to
        if drop_to is None or weight < self._limits.learn_requests:
            self._lines = ()
            return
        self._lines = tuple(
            Line(drop_to * at, math.ceil(100 * q + 150 * math.sqrt(q * (1 - q) / weight)) / 100)
            for q, at in zip(LINES, self.distribution.quantiles(LINES), strict=True)
        )


@dataclass
class RequestWeight:
    """How much a request's acceptance counts: as its draft tokens, at most as an average one.

    The floor is one of tokens, so a request of five draft tokens may not count as one of five
    hundred; and a bounded bet needs a bounded weight.
    """

    mean_tokens: float | None = field(default=None)

    def of(self, draft_tokens: int) -> float:
        weight = 1.0 if self.mean_tokens is None else min(1.0, draft_tokens / self.mean_tokens)
        before = draft_tokens if self.mean_tokens is None else self.mean_tokens
        self.mean_tokens = before + 0.02 * (draft_tokens - before)
        return weight


def tell_floor(check: Check, rate: float, floor: float, weight: float) -> None:
    """One request's acceptance, as the share of its draft tokens that was thrown away."""
    borne = 1.0 - floor
    check.value(borne + weight * (floor - rate), borne)


def tell_drop(check: Check, rate: float, lines: tuple[Line, ...]) -> None:
    for way, line in enumerate(lines):
        check.count(int(rate < line.at), 1, line.allowed, way=way)
