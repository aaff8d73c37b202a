"""A simulated server on a thread of this process, for clients that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from orchestrator.adapters.simulated.configuration import configure
from orchestrator.adapters.simulated.server import SimulatedServer
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Endpoint


@contextmanager
def served(deployment: Deployment, *, time_scale: float = 0.01) -> Iterator[Endpoint]:
    """Its endpoint. A planted crash ends the listening, as it would end the process."""
    ready, over = threading.Event(), threading.Event()
    told: list[str] = []

    async def serve() -> None:
        gone = asyncio.Event()
        server = SimulatedServer(configure(deployment), time_scale=time_scale, on_crash=gone.set)
        runner = web.AppRunner(server.app(), handler_cancellation=True, shutdown_timeout=0.01)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        told.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        ready.set()
        while not (over.is_set() or gone.is_set()):
            await asyncio.sleep(0.005)
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield Endpoint("served", told[0], deployment.target, simulated=True)
    finally:
        over.set()
        thread.join(10)
