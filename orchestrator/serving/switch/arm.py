"""One arm as a replica of the switch sees it: its address, and whether it lives."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping

import aiohttp
import orjson
from yarl import URL

from orchestrator.adapters.http.prometheus import read_page
from orchestrator.switch.config import Health
from orchestrator.switch.observation import ArmName

KEEP_ALIVE_S = 2.0
"""Below every server's own (uvicorn's: 5 s): no request is sent down a connection that is being
closed."""
LOOKS = 8
"""At the engine's counters, while one token is waited for."""
_OURS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
PROBE = {"prompt": "1", "max_tokens": 1, "temperature": 0}


class Arm:
    """Sends requests, and finds out within `health.period_s` that the arm is dead or hangs.

    Bytes that arrive are the proof of life. When none came for a quarter of the period, the engine
    is asked for its counters and for one token; nothing for half the period: down. (A byte right
    after a look is noticed at the next look: ¼ + ¼ + ½.) `on_change` is told of every change.
    """

    def __init__(
        self, name: ArmName, address: str, health: Health, on_change: Callable[[Arm, str], None]
    ) -> None:
        self.name, self.address, self._health = name, address, health
        self._on_change = on_change
        self.up, self.in_flight = True, 0
        self._heard_s = time.monotonic()
        self._waiting: set[asyncio.Future[tuple[aiohttp.ClientResponse, bytes]]] = set()
        self._suspect = asyncio.Event()
        self._model: str | None = None
        self._progress: tuple[float, float] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        path = self.address.removeprefix("unix:")
        connector: aiohttp.BaseConnector
        if path != self.address:
            connector = aiohttp.UnixConnector(path, limit=0, keepalive_timeout=KEEP_ALIVE_S)
            self._base = "http://engine"
        else:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
            self._base = self.address.rstrip("/")
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            skip_auto_headers=_OURS,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=self._health.connect_s, sock_read=self._health.silence_s
            ),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """The head of the answer and its first bytes; `b""`: it has none.

        Raises: ArmLost when the arm does not live to send them.
        """
        first = asyncio.ensure_future(self._first(method, target, headers, body))
        self._waiting.add(first)
        try:
            return await first
        except asyncio.CancelledError:
            if first.cancelled() and not self.up and not _cancelling():
                raise ArmLost(self.name, "timeout") from None
            first.cancel()
            raise
        except (OSError, aiohttp.ClientError, TimeoutError) as error:
            raise self.lost(error) from error
        finally:
            self._waiting.discard(first)

    async def _first(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        assert self._session is not None
        answer = await self._session.request(
            method,
            URL(self._base + target, encoded=True),
            headers=headers,
            data=body or None,
            allow_redirects=False,
        )
        try:
            piece = await answer.content.readany()
        except BaseException:
            answer.close()
            raise
        self.heard()
        return answer, piece

    def heard(self) -> None:
        self._heard_s = time.monotonic()

    def lost(self, error: BaseException) -> ArmLost:
        """The error as one of ours; what it says of the arm is looked into at once."""
        if isinstance(error, aiohttp.ClientConnectorError):
            self._become(False, "refused")
            return ArmLost(self.name, "refused")
        self._suspect.set()
        timeout = isinstance(error, TimeoutError)
        return ArmLost(self.name, "timeout" if timeout else "reset")

    def doubt(self) -> None:
        """It answered with an error of its own: is it alive?"""
        self._suspect.set()

    async def watch(self) -> None:
        """For ever: looks whether the arm lives."""
        quarter = self._health.period_s / 4
        looked = self._heard_s
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._suspect.wait(), quarter)
            doubted = self._suspect.is_set()
            self._suspect.clear()
            if self.up and not doubted and self._heard_s > looked:
                looked = self._heard_s
                continue
            alive = await self._alive(2 * quarter)
            looked = self._heard_s = time.monotonic()
            self._become(alive, "answers" if alive else "silent")

    async def _alive(self, patience_s: float) -> bool:
        """Whether a token comes, for us or for anybody: ours may wait behind others' requests."""
        since, self._progress = self._heard_s, None
        token = asyncio.ensure_future(self._gives_a_token())
        try:
            async with asyncio.timeout(patience_s):
                while not token.done():
                    if await self._moves():
                        return True
                    await asyncio.wait({token}, timeout=patience_s / LOOKS)
                return token.result()
        except (OSError, aiohttp.ClientError, TimeoutError, ValueError, LookupError, TypeError):
            return self.up and self._heard_s > since
        finally:
            token.cancel()
            # Its own error, if it has one, has been seen or does not matter any more.
            await asyncio.gather(token, return_exceptions=True)

    async def _moves(self) -> bool:
        """Whether the engine's own counters went on since the look before in this examination: it
        works, if only on answers that are sent when they are whole."""
        if self.in_flight == 0:
            return False
        assert self._session is not None
        async with self._session.get(self._base + "/metrics") as page:
            if page.status != 200:
                return False
            read = read_page((await page.read()).decode("utf-8", "replace"), at_unix_s=0.0)
        if read is None or read.generation_tokens is None:
            return False
        now = (read.prompt_tokens or 0.0, read.generation_tokens)
        before, self._progress = self._progress, now
        return before is not None and now != before

    async def _gives_a_token(self) -> bool:
        assert self._session is not None
        if self._model is None:
            async with self._session.get(self._base + "/v1/models") as page:
                models = orjson.loads(await page.read())
            self._model = str(models["data"][0]["id"])
        body = orjson.dumps({"model": self._model, **PROBE})
        kind = {"Content-Type": "application/json"}
        async with self._session.post(
            self._base + "/v1/completions", data=body, headers=kind
        ) as answer:
            await answer.read()
            if answer.status in (404, 405):  # it has no completions: its word must do
                async with self._session.get(self._base + "/health") as page:
                    return page.status == 200
            return answer.status < 500

    def _become(self, up: bool, why: str) -> None:
        if up == self.up:
            return
        self.up = up
        if not up:
            self._model = None  # another engine may come in its place
            for task in list(self._waiting):
                task.cancel()  # nothing of these has reached its caller: the other arm takes them
        self._on_change(self, why)


class ArmLost(Exception):
    """The arm gave no answer, or not the whole of it. `why`: `refused`, `reset` or `timeout`."""

    def __init__(self, arm: ArmName, why: str) -> None:
        super().__init__(f"{arm}: {why}")
        self.arm, self.why = arm, why


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
