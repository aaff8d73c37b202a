"""Two simulated engines, each on a thread with a socket of its own, and one switch before them."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from aiohttp import web

from orchestrator.adapters.simulated.configuration import configure
from orchestrator.adapters.simulated.server import SimulatedServer
from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.serving.switch.admin import AdminApp
from orchestrator.serving.switch.board import Board
from orchestrator.serving.switch.ingress import Ingress
from orchestrator.serving.switch.keeper import Keeper
from orchestrator.switch.config import SwitchConfig, switch_config
from orchestrator.switch.guarding import Guard, Permissive
from orchestrator.switch.keys import key_hash

OPERATOR = "sk-switch-" + "ab" * 32
HEALTH = {"period_s": 0.8, "return_after_s": 0.2, "connect_s": 0.5}
ENGINES = {
    "baseline": Deployment("sim", {"simulated": {"profile": "fast", "seed": 3}}),
    "speculative": Deployment(
        "sim", {"simulated": {"profile": "fast", "seed": 3}}, Speculation("ngram", 3)
    ),
}


class Engine:
    """A simulated engine that can be frozen (as by SIGSTOP) and killed, and started again."""

    def __init__(self, arm: str, path: Path, *, time_scale: float = 1.0) -> None:
        self._arm, self._path, self._scale = arm, path, time_scale
        self._thaw = threading.Event()
        self.start()

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    async def _run(self, ready: threading.Event) -> None:
        self._loop, self._gone = asyncio.get_running_loop(), asyncio.Event()
        server = SimulatedServer(configure(ENGINES[self._arm]), time_scale=self._scale)
        self.live = server.live
        app = server.app()

        @web.middleware
        async def seen(request: web.Request, handler: Any) -> Any:
            self.headers = dict(request.headers)
            self.body = await request.read()
            return await handler(request)

        app.middlewares.append(seen)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
        await runner.setup()
        await web.UnixSite(runner, str(self._path)).start()
        ready.set()
        await self._gone.wait()
        await runner.cleanup()

    def freeze(self) -> None:
        self._thaw.clear()
        self._loop.call_soon_threadsafe(self._thaw.wait)

    def thaw(self) -> None:
        self._thaw.set()

    def kill(self) -> None:
        self.thaw()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._gone.set)
        self._thread.join(10)

    @property
    def running(self) -> int:
        return len(self.live._streams)


class Switch:
    """One replica and one keeper, in threads of this process."""

    def __init__(self, config: SwitchConfig, guard: Guard | None = None) -> None:
        self.config = config
        self.keeper = Keeper(config, guard or Permissive())
        self._over = threading.Event()
        self._ready = threading.Event()
        self._threads = [
            threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True),
            threading.Thread(target=self._judge, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        assert self._ready.wait(10)

    async def _serve(self) -> None:
        self.board = Board(self.config)
        await self.board.open()
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.ingress = Ingress(self.board)
        server = uvicorn.Server(uvicorn.Config(self.ingress, lifespan="on", log_level="warning"))
        serving = asyncio.create_task(server.serve([listening]))
        operators = [("olga", key_hash(OPERATOR))]
        runner = web.AppRunner(AdminApp(self.keeper, operators).app())
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.admin_port = runner.addresses[0][1]
        self._ready.set()
        while not self._over.is_set():
            await asyncio.sleep(0.01)
        server.should_exit = True
        await serving
        await runner.cleanup()
        await self.board.close()

    def _judge(self) -> None:
        while not self._over.wait(0.05):
            self.keeper.judge()

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(10)
        self.keeper.store.close()

    # As an operator

    def admin(
        self, method: str, path: str, said: Any = None, token: str = OPERATOR
    ) -> tuple[int, Any]:
        answer = ask(
            self.admin_port,
            said,
            method=method,
            path=path,
            headers={"Authorization": f"Bearer {token}"},
        )
        return answer.status, json.loads(answer.body)

    def set(self, **policy: Any) -> None:
        """Returns when the replica obeys."""
        status, said = self.admin("POST", "/admin/policy", {"policy": policy, "why": "a test"})
        assert status == 200, said
        wait_for(lambda: self.board.verdict.settings == said["version"])


@dataclass
class Got:
    status: int
    headers: dict[str, str]
    body: bytes
    pieces: list[tuple[float, bytes]] = field(default_factory=list)

    @property
    def said(self) -> Any:
        return json.loads(self.body)

    @property
    def arm(self) -> str | None:
        return self.headers.get("x-arm")


def ask(
    where: int | Path,
    said: Any = None,
    *,
    path: str = "/v1/completions",
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout_s: float = 20.0,
) -> Got:
    """Asks a port, or an engine's own socket."""
    connection = http.client.HTTPConnection("127.0.0.1", 0, timeout=timeout_s)
    if isinstance(where, Path):
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(timeout_s)
        connection.sock.connect(str(where))
    else:
        connection.port = where
    try:
        sent = body if body is not None else b"" if said is None else json.dumps(said).encode()
        kinds = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, body=sent or None, headers=kinds)
        answer = connection.getresponse()
        whole = answer.read()
        return Got(answer.status, {k.lower(): v for k, v in answer.getheaders()}, whole)
    finally:
        connection.close()


def question(text: str = "Say it.", **more: Any) -> dict[str, Any]:
    return {"model": "sim", "prompt": text, "max_tokens": 8, "temperature": 0, **more}


def wait_for(holds: Callable[[], bool], patience_s: float = 10.0) -> float:
    """Seconds until it held."""
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < patience_s, "it never came about"
        time.sleep(0.01)
    return time.monotonic() - begun


@contextmanager
def engines(folder: Path, *, time_scale: float = 1.0) -> Iterator[dict[str, Engine]]:
    folder.mkdir(parents=True, exist_ok=True)
    both = {arm: Engine(arm, folder / f"{arm}.sock", time_scale=time_scale) for arm in ENGINES}
    try:
        yield both
    finally:
        for engine in both.values():
            engine.kill()


def config_for(folder: Path, **changes: Any) -> SwitchConfig:
    """The engines' sockets are in the state folder, or in the one around it."""
    place = folder if (folder / "baseline.sock").exists() else folder.parent
    return switch_config(
        {
            "state": str(folder),
            "arms": {arm: f"unix:{place}/{arm}.sock" for arm in ENGINES},
            "health": HEALTH,
            "arm_header": "x-arm",
            "guard": None,
            "policy": {"mode": "fixed", "share": 1.0},
            **changes,
        }
    )


@contextmanager
def switch(folder: Path, guard: Guard | None = None, **changes: Any) -> Iterator[Switch]:
    one = Switch(config_for(folder, **changes), guard)
    try:
        wait_for(lambda: one.board.verdict.settings > 0)
        yield one
    finally:
        one.close()
