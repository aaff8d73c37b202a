"""The simulated engine behind an OpenAI-compatible HTTP server, on real or scaled time.

    python -m orchestrator.adapters.simulated.server --port 8000 --config '{"target": "tiny",
        "engine": {"simulated": {"profile": "llama-8b-h100"}},
        "speculation": {"method": "eagle", "speculation_length": 3}}'

Everything it says is labelled: `owned_by: simulated`, and the header `x-simulated: true`.
The header `x-prompt-category` of a request names its category (for acceptance by category).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from orchestrator.adapters.simulated.configuration import EngineConfiguration, configure
from orchestrator.adapters.simulated.engine import SimulatedEngine, seeded
from orchestrator.adapters.simulated.front import (
    EVENT_STREAM,
    LARGEST_BODY,
    Front,
    Reply,
    json_reply,
    refusal,
)
from orchestrator.adapters.simulated.generation import Generation
from orchestrator.adapters.simulated.live import LiveEngine, Stream
from orchestrator.adapters.simulated.openai_payloads import BadRequest
from orchestrator.errors import SpecError
from orchestrator.plan.deployment import Deployment, Speculation


class SimulatedServer:
    """The HTTP face of one simulated engine."""

    def __init__(
        self,
        configuration: EngineConfiguration,
        *,
        time_scale: float = 1.0,
        on_crash: Callable[[], None] | None = None,
    ) -> None:
        engine = SimulatedEngine(configuration, seeded(configuration, "http"))
        self._front = Front(configuration, engine, seed="http", started_unix_s=time.time())
        self.live = LiveEngine(engine, time_scale=time_scale, on_crash=on_crash or _die)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._answer)
        app.on_response_prepare.append(_label)
        app.cleanup_ctx.append(self._stepping)
        return app

    async def _stepping(self, app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self.live.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.live.catch_up()
        if request.path == "/health" and self.live.engine.hung:
            await asyncio.Event().wait()
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = self._front.handle(request.method, request.path, headers, await request.read())
        if self.live.engine.crashed:
            self.live.wake()
            await asyncio.Event().wait()
        if isinstance(answer, Reply):
            return _reply(answer)
        stream = self.live.submit(answer.job)
        if stream is None:
            status = answer.job.http_status or 500
            return _reply(refusal(BadRequest(answer.job.error_text or "refused", status=status)))
        try:
            if answer.asked.stream:
                return await _streamed(request, answer, stream)
            return await _whole(answer, stream)
        finally:
            self.live.leave(stream)


async def _streamed(
    request: web.Request, generation: Generation, stream: Stream
) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": EVENT_STREAM, "Cache-Control": "no-cache"}
    )
    await response.prepare(request)
    sent = 0
    while (tokens := await stream.chunks.get()) is not None:
        for payload in generation.chunks(sent, sent + tokens):
            await response.write(_event(payload))
        sent += tokens
    for payload in generation.closing():
        await response.write(_event(payload))
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def _whole(generation: Generation, stream: Stream) -> web.Response:
    while await stream.chunks.get() is not None:
        pass
    job = generation.job
    if job.error is not None:
        return _reply(refusal(BadRequest(job.error_text or "failed", status=500)))
    return _reply(json_reply(generation.whole()))


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def _reply(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)


async def _label(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["x-simulated"] = "true"


def _die() -> None:
    """A crash is a crash: connections are reset, the process is gone."""
    print("simulated engine: planted crash", file=sys.stderr, flush=True)
    os._exit(1)


def read_deployment(text: str) -> Deployment:
    """A deployment from JSON, or from the file it names: target, engine, speculation."""
    raw = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text("utf-8"))
    speculation = raw.get("speculation")
    return Deployment(
        target=raw.get("target", "simulated"),
        engine=raw.get("engine", {}),
        speculation=Speculation(**speculation) if speculation else None,
        replica_of=raw.get("replica_of"),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="simulated server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--config", default="{}", help="JSON of the deployment, or a file of it")
    parser.add_argument("--time-scale", type=float, default=1.0, help="real seconds per second")
    given = parser.parse_args(arguments)
    try:
        configuration = configure(read_deployment(given.config))
    except SpecError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    time.sleep(given.time_scale * (configuration.model.start_s + configuration.faults.slow_start_s))
    if configuration.faults.start_failure is not None:
        print(f"simulated start failure: {configuration.faults.start_failure}", file=sys.stderr)
        return 1
    server = SimulatedServer(configuration, time_scale=given.time_scale)
    web.run_app(
        server.app(),
        host=given.host,
        port=given.port,
        print=lambda line: print(line, file=sys.stderr),
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=1.0,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
