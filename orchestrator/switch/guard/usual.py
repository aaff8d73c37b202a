"""What has been usual: the distribution of a share in [0, 1], old values fading."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

BINS = 100
"""Resolution 0.01, whatever the traffic: memory is bounded."""
FADED = 40.0
"""Half-lives after which nothing is left of a value."""


class Usual:
    """A histogram whose weights halve in `half_life_s`."""

    def __init__(self, half_life_s: float) -> None:
        self._half_life_s = half_life_s
        self._weights = [0.0] * BINS
        self._total = 0.0
        self._unit = 1.0
        """What an observation weighs now. Instead of all weights falling, it rises."""
        self._at_s: float | None = None

    def add(self, at_s: float, values: Sequence[float]) -> None:
        """Takes in a round's values; those before it fade by the time since."""
        if self._at_s is not None and at_s > self._at_s:
            self._unit *= math.exp2(min((at_s - self._at_s) / self._half_life_s, FADED))
            if self._unit > 2.0**FADED:
                self._weights = [w / self._unit for w in self._weights]
                self._total, self._unit = sum(self._weights), 1.0
        self._at_s = at_s
        for value in values:
            self._weights[min(int(value * BINS), BINS - 1)] += self._unit
        self._total += self._unit * len(values)

    @property
    def weight(self) -> float:
        """How many present observations it is worth."""
        return self._total / self._unit

    def quantiles(self, levels: Sequence[float]) -> tuple[float, ...]:
        """Values below which these shares lie; straight within a bin.

        Undefined: ValueError before anything was added.
        """
        sums = list(accumulate(self._weights))
        if not sums[-1]:
            raise ValueError("nothing was added yet")
        found = []
        for level in levels:
            target = level * sums[-1]
            at = bisect_left(sums, target)
            below = sums[at - 1] if at else 0.0
            weight = self._weights[at]
            found.append((at + ((target - below) / weight if weight else 0.0)) / BINS)
        return tuple(found)

    def snapshot(self) -> dict[str, object]:
        """Plain JSON; empty bins are left out."""
        present = [round(w / self._unit, 3) for w in self._weights]
        kept = {str(i): w for i, w in enumerate(present) if w}
        return {"at_s": self._at_s, "weights": kept}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Raises: KeyError, TypeError or ValueError when it is not a snapshot of this form."""
        weights = [0.0] * BINS
        for index, weight in kept["weights"].items():
            if not 0 <= int(index) < BINS:
                raise ValueError(f"bins are 0 to {BINS - 1}, got {index}")
            weights[int(index)] = float(weight)
        self._weights, self._total, self._unit = weights, sum(weights), 1.0
        self._at_s = None if kept["at_s"] is None else float(kept["at_s"])
