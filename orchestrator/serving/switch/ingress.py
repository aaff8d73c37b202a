"""The ASGI app in front of both arms: reads a request, lets it in, picks its arm, passes it on."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from orchestrator.serving.switch.board import Board
from orchestrator.serving.switch.door import Door, Guest, begin
from orchestrator.serving.switch.refusals import Refused
from orchestrator.serving.switch.relay import Relay
from orchestrator.switch.asked import GENERATING, Asked, beyond_limits, read_body, rewritten

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PASSED_ON = frozenset(
    {
        "accept",
        "accept-language",
        "baggage",
        "content-type",
        "traceparent",
        "tracestate",
        "user-agent",
        "x-request-id",
        "x-prompt-category",
    }
)
"""Headers of a request that reach an engine: others may order it about (`x-data-parallel-rank`,
`x-forwarded-…`) or tell it secrets (`authorization`, `cookie`)."""


class Ingress:
    """One replica's front door. `board` None until the replica's event loop runs."""

    def __init__(self, board: Board) -> None:
        self._board, self._config = board, board.config
        secret = board.store.secret("cache_salt", lambda: uuid.uuid4().hex + uuid.uuid4().hex)
        self._door = Door(board.config, secret)
        self._paths = frozenset(board.config.paths)
        self._headers = PASSED_ON | {board.config.category_header.lower()}
        if not board.config.tenants:  # then a key, if any, is the engine's
            self._headers |= {"authorization"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":  # a websocket: closed unopened
            await send({"type": "websocket.close", "code": 1003})
            return
        sending = _Sending(send)
        try:
            await self._answer(scope, receive, sending)
        except _CallerLeft:
            self._board.count("callers_left")
        except Refused as refused:
            self._board.count(f"refused_{refused.status}")
            if sending.started:
                raise  # too late to say it: the connection breaks
            await _refuse(refused, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        arrived_s = time.monotonic()
        path = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/"))
        if path == "/health":
            await self._health(send)
            return
        if path not in self._paths:
            raise Refused(404, "Not Found")
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        address = (scope.get("client") or ("unknown",))[0]
        guest = self._door.enter(headers.get("authorization"), address, arrived_s)
        if self._board.callers >= self._config.limits.in_flight:
            raise Refused(429, "the switch is full", headers={"Retry-After": "1"})
        self._board.arrived()
        try:
            body = await self._body(headers, receive)
            asked = read_body(path, body)
            found = beyond_limits(asked, self._config.limits)
            if found is not None:
                raise Refused(400, f"{found[0]} {found[1]}", param=found[0])
            query = scope.get("query_string", b"").decode("latin-1")
            relay = Relay(
                board=self._board,
                asked=asked,
                body=self._rewritten(asked, guest),
                method=scope["method"],
                target=path + (f"?{query}" if query else ""),
                headers={name: headers[name] for name in self._headers if name in headers},
                tenant=guest.name,
                category=headers.get(self._config.category_header.lower()),
                sticky=_of_tenant(guest, asked.sticky(headers, self._config.sticky)),
                arrived_s=arrived_s,
            )
            if path not in GENERATING:
                await self._within(relay.run(send), receive)
                return
            estimate = asked.estimate(self._config.limits.max_tokens)
            begin(guest, estimate, time.monotonic())
            try:
                await self._within(relay.run(send), receive)
            finally:
                if guest.allowance is not None:
                    guest.allowance.end(estimate, relay.tokens, time.monotonic())
        finally:
            self._board.left()
        relay.mirror()

    async def _within(self, answer: Awaitable[None], receive: Receive) -> None:
        """Ends the answer when its caller leaves, or when it takes too long.

        Raises: Refused 504; _CallerLeft
        """
        limit = self._config.limits.request_s
        task = asyncio.current_task()
        assert task is not None
        leaving = asyncio.ensure_future(_disconnect(receive))
        leaving.add_done_callback(lambda left: left.cancelled() or task.cancel())
        try:
            async with asyncio.timeout(limit):
                await answer
        except TimeoutError:
            raise Refused(504, f"the answer took longer than {limit:g} s") from None
        except asyncio.CancelledError:
            if leaving.done() and task.uncancel() == 0:
                raise _CallerLeft from None
            raise
        finally:
            leaving.cancel()

    def _rewritten(self, asked: Asked, guest: Guest) -> bytes:
        own = (asked.said or {}).get("cache_salt")
        return rewritten(
            asked,
            salt=self._door.salt(guest, own),
            count_tokens=self._config.watch_usage,
            largest=self._config.limits.max_tokens,
        )

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        """Raises: Refused 413 and 408."""
        most = self._config.limits.body_bytes
        told = headers.get("content-length", "0")
        if told.isdigit() and int(told) > most:
            raise Refused(413, f"the body must be at most {most} bytes, got {told}")
        pieces, size = [], 0
        try:
            async with asyncio.timeout(self._config.limits.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _CallerLeft
                    pieces.append(message.get("body", b""))
                    size += len(pieces[-1])
                    if size > most:
                        raise Refused(413, f"the body must be at most {most} bytes")
                    if not message.get("more_body"):
                        return b"".join(pieces)
        except TimeoutError:
            limit = self._config.limits.body_s
            raise Refused(408, f"the body must arrive within {limit:g} s") from None

    async def _health(self, send: Send) -> None:
        """200 while one of the arms lives."""
        alive = any(arm.up for arm in self._board.arms.values())
        await send({"type": "http.response.start", "status": 200 if alive else 503, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class _CallerLeft(Exception):
    """Nobody waits for an answer any more."""


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Sending:
    """Remembers whether an answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send, self.started = send, False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        self.started = True
        await self._send(message)


def _of_tenant(guest: Guest, sticky: str | None) -> str | None:
    """The same user name with two tenants is two users."""
    return None if sticky is None else f"{guest.name or ''}\0{sticky}"


async def _refuse(refused: Refused, send: Send) -> None:
    body = refused.body()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers += [(name.lower().encode(), text.encode()) for name, text in refused.headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
