"""The over-saturation test while a block runs, so that a lost rung need not be sat through."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from orchestrator.analyse.growth import Timeline
from orchestrator.analyse.saturation import Saturation, verdict_of

LOOK_CONFIDENCE = 0.99
"""One-sided, at every look; the tests state how often a stable queue is stopped in a block."""
FIRST_LOOK = 40
NEXT_LOOK = 1.25
"""Looks are made after 40, 50, 63, ... requests: few, and none late by more than a quarter."""


class SaturationMonitor:
    """A state machine fed with one arm's events of one open block; it never asks for the time.

    Feed it `came`, `first_token` and `left` in the order of time. `finding` is None until a look
    has found the queue growing without bound; from then on it stays, and the block may be ended:
    the requests not yet sent are not sent, those in flight are cancelled.
    """

    def __init__(
        self, *, confidence: float = LOOK_CONFIDENCE, first_look: int = FIRST_LOOK
    ) -> None:
        self.finding: Saturation | None = None
        self._confidence = confidence
        self._next_look = float(first_look)
        self._came: dict[Hashable, float] = {}
        self._first_token: dict[Hashable, float] = {}
        self._left: dict[Hashable, float] = {}
        self._turned_away = 0

    @property
    def saturated(self) -> bool:
        return self.finding is not None

    def came(self, request: Hashable, at_s: float) -> None:
        """A request was sent; a look is made when enough have been since the last."""
        self._came[request] = at_s
        if self.finding is None and len(self._came) >= self._next_look:
            self._next_look = NEXT_LOOK * len(self._came)
            self._look()

    def first_token(self, request: Hashable, at_s: float) -> None:
        self._first_token.setdefault(request, at_s)

    def left(self, request: Hashable, at_s: float, *, turned_away: bool = False) -> None:
        """A request ended; `turned_away` when it failed for want of capacity."""
        self._left[request] = at_s
        self._turned_away += turned_away

    def _look(self) -> None:
        keys = list(self._came)
        timeline = Timeline(
            np.array([self._came[key] for key in keys]),
            np.array([self._first_token.get(key, math.nan) for key in keys]),
            np.array([self._left.get(key, math.inf) for key in keys]),
        )
        seen = verdict_of([timeline], confidence=self._confidence, turned_away=self._turned_away)
        if seen.saturated:
            self.finding = seen
