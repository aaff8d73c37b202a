"""Counts of the last rounds."""

from __future__ import annotations

from collections import deque


class RecentShare:
    """How many of how many, over the last `rounds` rounds and the one that runs."""

    def __init__(self, rounds: int) -> None:
        self._closed: deque[tuple[int, int]] = deque(maxlen=rounds)
        self._hits = 0
        self._of = 0

    def add(self, hit: bool) -> None:
        self._hits += hit
        self._of += 1

    def close(self) -> None:
        self._closed.append((self._hits, self._of))
        self._hits = self._of = 0

    @property
    def hits(self) -> int:
        return self._hits + sum(hits for hits, _ in self._closed)

    @property
    def of(self) -> int:
        return self._of + sum(of for _, of in self._closed)
