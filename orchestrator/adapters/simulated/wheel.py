"""Many things due at many times, on one precise alarm."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable

from orchestrator.adapters.http.alarm import make_alarm


class Wheel:
    """Calls each stream back when its next chunk is due."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._alarm = make_alarm(loop, self._ring)
        self._heap: list[tuple[float, int, Callable[[float], float | None]]] = []
        self._count = 0

    def add(self, due_s: float, act: Callable[[float], float | None]) -> None:
        """`act` is called when due and returns when it is due next, or None."""
        self._count += 1
        heapq.heappush(self._heap, (due_s, self._count, act))
        if self._heap[0][1] == self._count:
            self._alarm.set(due_s)

    def _ring(self) -> None:
        heap = self._heap
        # One pass over what is due now: when the server is behind, every stream gets its turn and
        # sends all it owes at once, as a batching engine would.
        now_s = time.monotonic()
        while heap and heap[0][0] <= now_s:
            due_s, _, act = heapq.heappop(heap)
            next_s = act(now_s)
            if next_s is not None:
                self._count += 1
                heapq.heappush(heap, (max(next_s, due_s), self._count, act))
        if heap:
            self._alarm.set(heap[0][0])
