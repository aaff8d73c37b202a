"""An OpenAI-compatible app that computes nothing: one token every GAP_S, the first after TTFT_S."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

TTFT_S, GAP_S = 0.05, 0.02


async def _chunks(tokens: int) -> AsyncIterator[str]:
    begun = time.monotonic()
    for index in range(tokens):
        due = begun + TTFT_S + index * GAP_S
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        usage = {"prompt_tokens": 1, "completion_tokens": index + 1, "total_tokens": index + 2}
        last = "length" if index + 1 == tokens else None
        choice = {"index": 0, "delta": {"content": " a"}, "finish_reason": last}
        yield f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


async def complete(request: Request) -> StreamingResponse:
    asked = await request.json()
    return StreamingResponse(_chunks(int(asked["max_tokens"])), media_type="text/event-stream")


async def health(_: Request) -> JSONResponse:
    return JSONResponse({})


def make_app() -> Starlette:
    return Starlette(
        routes=[
            Route("/v1/chat/completions", complete, methods=["POST"]),
            Route("/health", health),
        ]
    )
