"""An engine process that can come to any kind of end: the simulated server, and what is planted.

    python -m tests.survival.engine CONFIG.json PORT_FILE PLANTED

It is started by `stand_in.StandInApp` and ends with it. Kills, stops and memory errors are real.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from orchestrator.adapters.simulated.configuration import configure
from orchestrator.adapters.simulated.server import SimulatedServer, read_deployment

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MID_BLOCK = 3
"""The third answer: one warmed up, one made the first pair, this one is in the second."""
MID_ANSWER_S = 0.05


def die_with_parent() -> None:
    """The kernel kills this process when whoever started it ends."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def run_out_of_memory() -> None:
    """A real MemoryError: more is asked for than the limit lets through."""
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + 2**26, own + 2**26))
    bytearray(2**30)


def end_without_memory() -> None:
    try:
        run_out_of_memory()
    except MemoryError:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


IN_MID_BLOCK: dict[str, Callable[[], None]] = {
    "engine_killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "replica_killed": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "hangs": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "out_of_memory_in_mid_run": end_without_memory,
}


def middleware(planted: str) -> Callable[..., Awaitable[web.StreamResponse]]:
    answers = 0

    @web.middleware
    async def act(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal answers
        if request.method != "POST":
            return await handler(request)
        answers += 1
        if planted == "answers_garbage" and answers >= MID_BLOCK:
            return web.Response(body=os.urandom(200), content_type="text/event-stream")
        if planted in IN_MID_BLOCK and answers == MID_BLOCK:
            asyncio.get_running_loop().call_later(MID_ANSWER_S, IN_MID_BLOCK[planted])
        return await handler(request)

    return act


async def serve(config: str, port_file: Path, planted: str) -> None:
    app = SimulatedServer(configure(read_deployment(config))).app()
    app.middlewares.append(middleware(planted))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    port_file.write_text(json.dumps(port))
    await asyncio.Event().wait()


def main(config: str, port_file: str, planted: str) -> None:
    die_with_parent()
    if planted == "never_ready":
        time.sleep(600)
    if planted == "out_of_memory_at_start":
        run_out_of_memory()
    asyncio.run(serve(config, Path(port_file), planted))


if __name__ == "__main__":
    main(*sys.argv[1:])
