"""Requests of both arms that met the same circumstances: the nearest in time, each used once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.switch.observation import Observation

LONGEST_APART_S = 30.0
WAITING_MAX = 64
"""Of one arm and category: beyond it the oldest go unpaired."""
CATEGORIES_MAX = 64


@dataclass(frozen=True, slots=True)
class PairSeen:
    """Two requests of one moment and, where known, of one category."""

    baseline: Observation
    speculative: Observation


class Pairing:
    """Pairs each request with the one of the other arm that has waited the shortest.

    Load, hour and neighbours hit both of a pair alike, so their comparison needs no fixed
    yardstick; and no request counts twice, so pairs tell separate things.
    """

    def __init__(self) -> None:
        self._waiting: dict[str | None, deque[Observation]] = {}

    def pair(self, seen: Observation) -> PairSeen | None:
        """The pair that `seen` completes, if there is one."""
        waiting = self._waiting.get(seen.category)
        if waiting is None:
            if len(self._waiting) >= CATEGORIES_MAX:
                return None
            waiting = self._waiting[seen.category] = deque(maxlen=WAITING_MAX)
        while waiting and waiting[0].at_s < seen.at_s - LONGEST_APART_S:
            waiting.popleft()
        # All that wait are of one arm: one of the other would have been paired with them.
        if waiting and waiting[-1].arm != seen.arm:
            other = waiting.pop()
            return PairSeen(other, seen) if seen.arm == "speculative" else PairSeen(seen, other)
        waiting.append(seen)
        return None

    def forget(self) -> None:
        self._waiting.clear()


def ratios(pair: PairSeen) -> Iterator[tuple[str, float]]:
    """(latency, speculative / baseline) for every latency that both have."""
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        mine: float | None = getattr(pair.speculative, name)
        other: float | None = getattr(pair.baseline, name)
        if mine is not None and other:
            yield name, mine / other
