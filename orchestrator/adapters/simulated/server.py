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

from orchestrator.adapters.simulated import openai_payloads as openai
from orchestrator.adapters.simulated.answers import Answer, answer_to, count_tokens, natural_length
from orchestrator.adapters.simulated.configuration import EngineConfiguration, configure
from orchestrator.adapters.simulated.engine import SimulatedEngine, seeded
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.live import LiveEngine, Stream
from orchestrator.adapters.simulated.metrics_text import metrics_text
from orchestrator.errors import SpecError
from orchestrator.plan.deployment import Deployment, Speculation

CATEGORY_HEADER = "x-prompt-category"
LARGEST_BODY = 64 * 2**20


class SimulatedServer:
    """The HTTP face of one simulated engine."""

    def __init__(
        self,
        configuration: EngineConfiguration,
        *,
        time_scale: float = 1.0,
        on_crash: Callable[[], None] | None = None,
    ) -> None:
        self._configuration = configuration
        self._model = configuration.served_name
        self._max_model_len = configuration.limits.max_model_len
        self._started_unix_s = time.time()
        self._served = 0
        engine = SimulatedEngine(configuration, seeded(configuration, "http"))
        self.live = LiveEngine(engine, time_scale=time_scale, on_crash=on_crash or _die)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_get("/health", self._health)
        app.router.add_get("/version", _version)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._completion)
        app.on_response_prepare.append(_label)
        app.cleanup_ctx.append(self._stepping)
        return app

    async def _stepping(self, app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self.live.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _health(self, request: web.Request) -> web.Response:
        self.live.catch_up()
        if self.live.engine.hung:
            await asyncio.Event().wait()
        return web.Response()

    async def _metrics(self, request: web.Request) -> web.Response:
        self.live.catch_up()
        text = metrics_text(self.live.engine, self._model, self._started_unix_s)
        return web.Response(text=text, content_type="text/plain")

    async def _models(self, request: web.Request) -> web.Response:
        model = {
            "id": self._model,
            "object": "model",
            "created": int(self._started_unix_s),
            "owned_by": "simulated",
            "max_model_len": self._max_model_len,
        }
        return web.json_response({"object": "list", "data": [model]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        try:
            body = await _json(request)
        except openai.BadRequest as error:
            return _refused(error)
        text = body.get("prompt") if isinstance(body, dict) else None
        if not isinstance(text, str):
            return _refused(openai.BadRequest("prompt must be a text", param="prompt"))
        count = count_tokens(text)
        answer = {"count": count, "max_model_len": self._max_model_len, "tokens": [*range(count)]}
        return web.json_response(answer)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, "chat")

    async def _completion(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, "completion")

    async def _answer(self, request: web.Request, kind: openai.Kind) -> web.StreamResponse:
        try:
            asked = openai.read_request(
                await _json(request), kind, model=self._model, max_model_len=self._max_model_len
            )
        except openai.BadRequest as error:
            return _refused(error)
        job, answer, stops = self._job(asked, request.headers.get(CATEGORY_HEADER, ""))
        stream = self.live.submit(job)
        if stream is None:
            status = job.http_status or 500
            return _refused(openai.BadRequest(job.error_text or "refused", status=status))
        head = {
            "id": job.name,
            "object": openai.OBJECTS[kind, asked.stream],
            "created": int(time.time()),
            "model": self._model,
        }
        finish = "stop" if stops else "length"
        try:
            if asked.stream:
                return await self._streamed(request, asked, stream, answer, head, finish)
            return await _whole(asked, stream, answer, head, finish)
        finally:
            self.live.leave(stream)

    def _job(self, asked: openai.Asked, category: str) -> tuple[Job, Answer, bool]:
        self._served += 1
        how: dict[str, Any] = {"seed": asked.seed, "temperature": asked.temperature}
        mean = self._configuration.model.natural_output_tokens
        ends_at = natural_length(asked.text, mean=mean, **how)
        stops = not asked.ignore_eos and ends_at < asked.max_tokens
        garbage = self._configuration.faults.garbage_output
        answer = answer_to(asked.text, garbage=garbage, **how)
        prefix = "chatcmpl" if asked.kind == "chat" else "cmpl"
        job = Job(
            f"{prefix}-simulated-{self._served}",
            asked.prompt_tokens,
            ends_at if stops else asked.max_tokens,
            category=category,
            temperature=asked.temperature,
        )
        return job, answer, stops

    async def _streamed(
        self,
        request: web.Request,
        asked: openai.Asked,
        stream: Stream,
        answer: Answer,
        head: dict[str, Any],
        finish: str,
    ) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
            }
        )
        await response.prepare(request)
        job, sent = stream.job, 0
        while (tokens := await stream.chunks.get()) is not None:
            last = finish if sent + tokens >= job.max_tokens else None
            text = answer.text(sent, sent + tokens)
            choice = openai.stream_choice(asked.kind, text, last, first=sent == 0)
            if asked.return_token_ids:
                choice["token_ids"] = answer.token_ids(sent, sent + tokens)
            sent += tokens
            chunk = {**head, "choices": [choice]}
            if asked.continuous_usage:
                chunk["usage"] = openai.usage(job.prompt_tokens, sent)
            await response.write(_event(chunk))
        if job.error is not None:
            await response.write(_event(openai.error_body(job.error_text or "failed", 500)))
        elif asked.include_usage:
            usage = openai.usage(job.prompt_tokens, sent)
            await response.write(_event({**head, "choices": [], "usage": usage}))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


async def _whole(
    asked: openai.Asked, stream: Stream, answer: Answer, head: dict[str, Any], finish: str
) -> web.Response:
    while await stream.chunks.get() is not None:
        pass
    job = stream.job
    if job.error is not None:
        return _refused(openai.BadRequest(job.error_text or "failed", status=500))
    choice = openai.whole_choice(asked.kind, answer.text(0, job.generated), finish)
    if asked.return_token_ids:
        choice["token_ids"] = answer.token_ids(0, job.generated)
    usage = openai.usage(job.prompt_tokens, job.generated)
    return web.json_response({**head, "choices": [choice], "usage": usage})


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


async def _json(request: web.Request) -> Any:
    try:
        return orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise openai.BadRequest(f"the body is not JSON: {error}") from error


def _refused(error: openai.BadRequest) -> web.Response:
    return web.json_response(error.body(), status=error.status)


async def _label(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["x-simulated"] = "true"


async def _version(request: web.Request) -> web.Response:
    return web.json_response({"version": "simulated"})


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
