"""How well the load generator itself kept up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from orchestrator.records import ClientHealth

PROBE_EVERY_S = 0.01


def upper_quantile(values: Sequence[float], q: float) -> float | None:
    """The smallest value that at least the fraction `q` of all values do not exceed.

    Formula: sorted(values)[ceil(q·n) − 1]. Undefined (None) without values.
    """
    if not values:
        return None
    rank = -(-len(values) * round(q * 1000) // 1000)
    return sorted(values)[max(0, rank - 1)]


def worst(parts: Sequence[ClientHealth]) -> ClientHealth:
    """The health of several workers: for every figure, that of the worst of them."""

    def most(name: str) -> float | None:
        values = [getattr(part, name) for part in parts]
        return max((value for value in values if value is not None), default=None)

    return ClientHealth(
        send_lag_p99_s=most("send_lag_p99_s"),
        send_lag_max_s=most("send_lag_max_s"),
        loop_lag_p99_s=most("loop_lag_p99_s"),
        loop_lag_max_s=most("loop_lag_max_s"),
        cpu_fraction=most("cpu_fraction"),
    )


class HealthProbe:
    """Watches the event loop and this thread's processor time from `start` to `stop`.

    Loop lag is how much later than asked a timer runs. uvloop keeps timers to a millisecond, so
    about 1 ms is the floor of what is shown. A stall that is still going on at `stop` counts.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lags: list[float] = []
        self._handle: asyncio.TimerHandle | None = None
        self._due_s = self._started_s = self._cpu_s = 0.0

    def start(self) -> None:
        self._started_s, self._cpu_s = time.monotonic(), time.thread_time()
        self._arm()

    def stop(self, send_lags: Sequence[float]) -> ClientHealth:
        now_s, cpu_s = time.monotonic(), time.thread_time()
        if self._handle is not None:
            self._handle.cancel()
        if now_s > self._due_s:
            self._lags.append(now_s - self._due_s)
        wall_s = now_s - self._started_s
        return ClientHealth(
            send_lag_p99_s=upper_quantile(send_lags, 0.99),
            send_lag_max_s=max(send_lags, default=None),
            loop_lag_p99_s=upper_quantile(self._lags, 0.99),
            loop_lag_max_s=max(self._lags, default=None),
            cpu_fraction=(cpu_s - self._cpu_s) / wall_s if wall_s > 0 else None,
        )

    def _arm(self) -> None:
        self._due_s = time.monotonic() + PROBE_EVERY_S
        self._handle = self._loop.call_later(PROBE_EVERY_S, self._tick)

    def _tick(self) -> None:
        self._lags.append(max(0.0, time.monotonic() - self._due_s))
        self._arm()
