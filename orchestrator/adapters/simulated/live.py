"""The simulated engine on real (or scaled) time: steps are taken when the clock reaches them."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.adapters.simulated.engine import SimulatedEngine
from orchestrator.adapters.simulated.job import Job


@dataclass(eq=False)
class Stream:
    """One request's output as it comes: tokens of a chunk, then None when it has ended."""

    job: Job
    chunks: asyncio.Queue[int | None] = field(default_factory=asyncio.Queue)
    delivered: int = 0


class LiveEngine:
    """Runs an engine on the event loop's clock, `time_scale` real seconds a virtual second.

    The schedule is absolute: a late wake-up delays one step's delivery and moves no later step.
    """

    def __init__(
        self,
        engine: SimulatedEngine,
        *,
        time_scale: float = 1.0,
        on_crash: Callable[[], None] = lambda: None,
    ) -> None:
        self.engine = engine
        self._scale, self._on_crash = time_scale, on_crash
        self._streams: list[Stream] = []
        self._wake = asyncio.Event()
        self._origin_s: float | None = None

    def submit(self, job: Job) -> Stream | None:
        """None when the engine refuses; `job` says why."""
        self.catch_up()
        if not self.engine.submit(job):
            return None
        stream = Stream(job)
        self._streams.append(stream)
        self._wake.set()
        return stream

    def wake(self) -> None:
        """Something happened to the engine from outside: it has crashed."""
        self._wake.set()

    def catch_up(self) -> None:
        """Brings an idle engine's clock to now: what drifts with time has drifted."""
        if not self.engine.scheduler.has_work:
            self.engine.idle_until(self._virtual_s())

    def leave(self, stream: Stream) -> None:
        """The client went away, or has everything."""
        if stream in self._streams:
            self._streams.remove(stream)
            self.engine.abort(stream.job)

    async def run(self) -> None:
        """Steps for ever; ends when the engine has crashed."""
        while not self.engine.crashed:
            if not self.engine.scheduler.has_work or self.engine.hung:
                await self._idle()
                continue
            self.engine.step()
            await asyncio.sleep(max(0.0, self._real_s(self.engine.now_s) - self._loop_s()))
            self._deliver()
        self._on_crash()

    async def _idle(self) -> None:
        """Waits for a request, or for the moment of a planted crash."""
        self._wake.clear()
        crash_s = self.engine.crash_s
        wait_s = None if math.isinf(crash_s) else self._real_s(crash_s) - self._loop_s()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), wait_s)
        self.engine.idle_until(self._virtual_s())

    def _deliver(self) -> None:
        for stream in list(self._streams):
            job = stream.job
            for tokens in job.chunk_tokens[stream.delivered :]:
                stream.chunks.put_nowait(tokens)
            stream.delivered = len(job.chunk_tokens)
            if job.end_s is not None:
                stream.chunks.put_nowait(None)
                self._streams.remove(stream)

    def _loop_s(self) -> float:
        now_s = asyncio.get_running_loop().time()
        if self._origin_s is None:
            self._origin_s = now_s - self.engine.now_s * self._scale
        return now_s

    def _virtual_s(self) -> float:
        now_s = self._loop_s()
        assert self._origin_s is not None
        return (now_s - self._origin_s) / self._scale

    def _real_s(self, virtual_s: float) -> float:
        self._loop_s()
        assert self._origin_s is not None
        return self._origin_s + virtual_s * self._scale
