"""The admin API: JSON over HTTP on a port of its own, for operators with a token.

| | |
|---|---|
| `GET /admin/state` | everything as it stands |
| `GET /admin/events?after=ID&most=N` | the audit log |
| `POST /admin/policy` | `{"policy": {…}, "why": "…"}` |
| `POST /admin/pause`, `/admin/resume` | `{"why": "…"}` |
| `GET /metrics` | Prometheus |
| `GET /` | the live page; it asks for the token itself |
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from orchestrator.serving.switch.door import Guesses
from orchestrator.serving.switch.keeper import Keeper
from orchestrator.serving.switch.metrics_page import metrics_page
from orchestrator.serving.switch.page import live_page
from orchestrator.serving.switch.refusals import error_body
from orchestrator.switch.config import SwitchConfig
from orchestrator.switch.keys import TOKEN_FILE, key_from, key_hash, owner
from orchestrator.switch.policy import Policy
from orchestrator.switch.settings import Settings

LARGEST_BODY = 65_536
WHO = web.RequestKey("who", str)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AdminApp:
    """Every request needs a token, the page's own files excepted (`open_paths`)."""

    def __init__(self, keeper: Keeper, operators: list[tuple[str, str]]) -> None:
        self._keeper, self._operators = keeper, operators
        self._guesses = Guesses()
        self.open_paths = {"/"}

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._guarded()])
        app.router.add_get("/admin/state", self._state)
        app.router.add_get("/admin/events", self._events)
        app.router.add_post("/admin/policy", self._policy)
        app.router.add_post("/admin/pause", self._pause)
        app.router.add_post("/admin/resume", self._resume)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/", self._page)
        return app

    def _guarded(self) -> Any:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path in self.open_paths:
                return await handler(request)
            address, now_s = request.remote or "unknown", time.monotonic()
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            who = owner(token.strip(), self._operators) if scheme.lower() == "bearer" else None
            if who is None:
                if self._guesses.wait_s(address, now_s) > 0:
                    return _error(429, "too many wrong tokens from here")
                self._guesses.wrong(address, now_s)
                return _error(401, "an operator's token is needed: Authorization: Bearer TOKEN")
            request[WHO] = who
            return await handler(request)

        return guarded

    async def _page(self, _: web.Request) -> web.Response:
        page = live_page()
        return web.Response(text=page.html, content_type="text/html", headers=page.headers)

    async def _state(self, _: web.Request) -> web.Response:
        return web.json_response(await asyncio.to_thread(self._keeper.state))

    async def _events(self, request: web.Request) -> web.Response:
        try:
            after = int(request.query.get("after", "0"))
            most = min(1000, max(1, int(request.query.get("most", "200"))))
        except ValueError:
            return _error(400, "after and most must be whole numbers")
        events = await asyncio.to_thread(self._keeper.store.events, after=after, most=most)
        return web.json_response([asdict(event) for event in events])

    async def _policy(self, request: web.Request) -> web.Response:
        said = await _body(request)
        try:
            policy = Policy.model_validate(said.get("policy"))
        except ValidationError as error:
            faults = [
                f"{'.'.join(map(str, ('policy', *one['loc'])))}: {one['msg']}"
                for one in error.errors()
            ]
            return _error(400, "; ".join(faults))
        return await self._change(request, said, "policy", lambda now: (policy, now.paused))

    async def _pause(self, request: web.Request) -> web.Response:
        said = await _body(request)
        return await self._change(request, said, "pause", lambda now: (now.policy, True))

    async def _resume(self, request: web.Request) -> web.Response:
        said = await _body(request)
        return await self._change(request, said, "resume", lambda now: (now.policy, False))

    async def _change(
        self,
        request: web.Request,
        said: dict[str, Any],
        what: str,
        alter: Callable[[Settings], tuple[Policy, bool]],
    ) -> web.Response:
        why = said.get("why")
        if not isinstance(why, str) or not why.strip():
            return _error(400, "why: must say why, in the audit log")

        def altered(before: Settings | None) -> tuple[Policy, bool] | None:
            assert before is not None, "the keeper has made the first settings"
            wanted = alter(before)
            return None if wanted == (before.policy, before.paused) else wanted

        settings = await asyncio.to_thread(
            self._keeper.store.change,
            altered,
            what=what,
            who=request[WHO],
            why=why.strip()[:1000],
            at_s=time.time(),
        )
        return web.json_response({"version": settings.version})

    async def _metrics(self, _: web.Request) -> web.Response:
        text = metrics_page(await asyncio.to_thread(self._keeper.state))
        return web.Response(text=text, content_type="text/plain", charset="utf-8")


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        said = await request.json()
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise web.HTTPBadRequest(
            text=error_body(400, "the body must be a JSON object").decode(),
            content_type="application/json",
        )
    return said


def _error(status: int, text: str) -> web.Response:
    return web.Response(
        status=status, body=error_body(status, text), content_type="application/json"
    )


def operators_of(config: SwitchConfig) -> list[tuple[str, str]]:
    """(name, hash) of who may operate; without any a token is made, once, and kept in a file that
    only its owner can read."""
    named = [(one.name, one.token_sha256) for one in config.admin.operators]
    if named:
        return named
    path = Path(config.state) / TOKEN_FILE
    try:
        private = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(private, "w", encoding="utf-8") as file:
            file.write(key_from(secrets.token_bytes(32)) + "\n")
    except FileExistsError:
        pass
    return [("operator", key_hash(path.read_text("utf-8").strip()))]
