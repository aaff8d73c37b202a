"""What a client process keeps between blocks: an event loop's connections, by server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from orchestrator.adapters.http.load import BlockLoad
from orchestrator.adapters.http.pool import ConnectionPool, Tls
from orchestrator.adapters.http.request import Origin, RequestWriter, UsageWanted, origin_of
from orchestrator.adapters.http.stream_load import Collected, StreamLoad
from orchestrator.plan.block import BlockPlan, Timeouts
from orchestrator.plan.fresh import FreshRequests
from orchestrator.ports import BlockObservation, Endpoint, OfferedLoad

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How the client asks, apart from what the block says."""

    usage: UsageWanted = "continuous"
    tls: Tls = field(default_factory=Tls)


class Session:
    """Blocks one after the other, over connections that stay open between them."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._pools: dict[Origin, ConnectionPool] = {}
        self._load: BlockLoad | None = None
        self._stream: StreamLoad | None = None

    async def prepare(self, endpoint: Endpoint, block: BlockPlan) -> None:
        """Writes the requests and opens connections. Raises: ValueError for an impossible plan."""
        pool = self._pool(endpoint)
        writer = RequestWriter(endpoint, block, self._options.usage)
        self._load = BlockLoad(pool, writer, block)
        await self._load.warm()

    def _pool(self, endpoint: Endpoint) -> ConnectionPool:
        origin = origin_of(endpoint.base_url)
        if origin not in self._pools:
            self._pools[origin] = ConnectionPool(origin, self._options.tls)
        return self._pools[origin]

    async def begin(
        self,
        endpoint: Endpoint,
        requests: FreshRequests,
        first_index: int,
        timeouts: Timeouts,
        start_s: float,
    ) -> None:
        """Opens a stream that offers nothing yet. Raises: ValueError for a bad address."""
        self._stream = StreamLoad(requests, first_index, timeouts, start_s, self._options.usage)
        self._stream.point_at(endpoint, self._pool(endpoint))

    async def offer(self, load: OfferedLoad) -> None:
        self._streaming.offer(load)

    async def redirect(self, endpoint: Endpoint) -> None:
        self._streaming.point_at(endpoint, self._pool(endpoint))

    async def collect(self, until_s: float) -> Collected:
        """What has ended by then (monotonic)."""
        return await self._streaming.collect(until_s)

    async def finish(self) -> None:
        """Gives up what is in flight."""
        await self._streaming.finish()
        self._stream = None

    @property
    def _streaming(self) -> StreamLoad:
        if self._stream is None:
            raise RuntimeError("no stream has begun")
        return self._stream

    async def go(self, start_s: float) -> BlockObservation:
        """Runs the prepared block from `start_s` on the monotonic clock."""
        if self._load is None:
            raise RuntimeError("go() before prepare()")
        load, self._load = self._load, None
        return await load.run(start_s)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()


class LoopRunner:
    """An event loop (uvloop where it is installed) that outlives a single call."""

    def __init__(self) -> None:
        try:
            import uvloop

            self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        except ImportError:  # uvloop does not exist for Windows
            self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def close(self) -> None:
        self._runner.close()
