"""`ports.Asker` over HTTP: requests down to their bytes, each on a connection of its own."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import httptools

from orchestrator.adapters.http.connection import Connection, Exchange
from orchestrator.adapters.http.pool import Tls
from orchestrator.adapters.http.request import origin_of
from orchestrator.adapters.http.session import LoopRunner
from orchestrator.adapters.http.sse import read_events
from orchestrator.ports import Answer, Ask, Endpoint
from orchestrator.records import RequestError

BODY_LIMIT_BYTES = 4 * 2**20
"""Of an answer's body so much is kept; the rest is read and dropped."""
CONNECT_S = 10.0
_SLOW_READER_BUFFER = 4096
_TURN_S = 0.05
"""Between two pieces of a body that is sent slowly."""
_NO_TLS_OPTIONS = Tls()


class HttpAsker:
    """Implements ports.Asker. Proxies of the environment are ignored, as when measuring."""

    def __init__(self, *, tls: Tls = _NO_TLS_OPTIONS, body_limit: int = BODY_LIMIT_BYTES) -> None:
        self._tls, self._body_limit = tls, body_limit

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        """Raises: ValueError for an endpoint whose address is no HTTP address."""
        if in_flight < 1:
            raise ValueError(f"in_flight >= 1 must hold, got {in_flight}")
        runner = LoopRunner()
        try:
            return runner.run(self._all(endpoint, asks, in_flight))
        finally:
            runner.close()

    async def _all(self, endpoint: Endpoint, asks: Sequence[Ask], in_flight: int) -> list[Answer]:
        origin = origin_of(endpoint.base_url)
        context = self._tls.context() if origin.tls else None
        turn = asyncio.Semaphore(in_flight)

        async def one(ask: Ask) -> Answer:
            async with turn:
                wire = _Wire(ask, self._body_limit)
                connecting = asyncio.get_running_loop().create_connection(
                    lambda: wire,
                    origin.host,
                    origin.port,
                    ssl=context,
                    server_hostname=origin.host if context else None,
                )
                sent_s = time.monotonic()
                try:
                    async with asyncio.timeout(min(CONNECT_S, ask.timeout_s)):
                        await connecting
                except TimeoutError:
                    text = f"no connection within {min(CONNECT_S, ask.timeout_s):g} s"
                    return _no_answer(RequestError.CONNECT_TIMEOUT, text, sent_s)
                except OSError as fault:
                    return _no_answer(RequestError.CONNECT, str(fault), sent_s)
                return await _exchange(wire, ask, request_head(endpoint, ask))

        return list(await asyncio.gather(*(one(ask) for ask in asks)))


def request_head(endpoint: Endpoint, ask: Ask) -> bytes:
    """The request line and headers. What the ask says goes as it is; what it leaves out (host,
    the endpoint's own headers, the body's length) is added."""
    parts = urlsplit(endpoint.base_url)
    given = {name.lower() for name, _ in ask.headers}
    lines = [f"{ask.method} {parts.path.rstrip('/')}{ask.path} HTTP/1.1"]
    own = {"Host": parts.netloc.rpartition("@")[2], **endpoint.headers, "Connection": "close"}
    if not given & {"content-length", "transfer-encoding"}:
        own["Content-Length"] = str(len(ask.body))
    lines += [f"{name}: {value}" for name, value in own.items() if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in ask.headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


async def _exchange(wire: _Wire, ask: Ask, head: bytes) -> Answer:
    """Sends, waits for the end, whatever that is, and closes. Never raises."""
    ended = asyncio.Event()
    exchange = Exchange(ended.set)
    exchange.sent_s = time.monotonic()
    abandon_s = ask.abandon_after_s
    leaves_early = abandon_s is not None and abandon_s < ask.timeout_s
    limit_s = abandon_s if leaves_early and abandon_s is not None else ask.timeout_s
    sending = asyncio.create_task(wire.send_paced(exchange, head))
    try:
        async with asyncio.timeout(limit_s):
            await ended.wait()
    except TimeoutError:
        if leaves_early:
            wire.leave()
        else:
            wire.abandon(RequestError.TOTAL_TIMEOUT, f"limit of {limit_s:g} s passed")
    finally:
        sending.cancel()
        wire.close()
    return _answer(exchange, wire)


def _answer(exchange: Exchange, wire: _Wire) -> Answer:
    assert exchange.sent_s is not None and exchange.end_s is not None
    sent_s = exchange.sent_s
    events: tuple[tuple[float, str], ...] = ()
    if exchange.content_type.startswith("text/event-stream"):
        found = read_events(exchange.body, complete=exchange.complete)
        events = tuple((e.at_s - sent_s, e.data.decode("utf-8", "replace")) for e in found)
    return Answer(
        status=exchange.status,
        body=b"".join(piece for _, piece in exchange.body).decode("utf-8", "replace"),
        events=events[: wire.events_wanted],
        content_type=exchange.content_type or None,
        error=exchange.error,
        error_text=exchange.error_text,
        seconds=exchange.end_s - sent_s,
        abandoned=wire.left,
        truncated_body=wire.truncated,
    )


def _no_answer(error: RequestError, text: str, sent_s: float) -> Answer:
    return Answer(None, "", error=error, error_text=text, seconds=time.monotonic() - sent_s)


class _Wire(Connection):
    """A connection that understands what comes at once, and can be slow or leave on purpose."""

    def __init__(self, ask: Ask, body_limit: int) -> None:
        super().__init__(lambda connection: None)
        self._ask, self._room = ask, body_limit
        self.events_wanted = ask.abandon_after_events
        self.left = self.truncated = False
        self._unread = b""

    async def send_paced(self, exchange: Exchange, head: bytes) -> None:
        """Head and body; slowly when asked to. The answer may come, or the server go, before the
        end: then nobody waits for the rest."""
        pace = self._ask.send_bytes_per_s
        if pace is None:
            self.send(exchange, head + self._ask.body)
            return
        self.send(exchange, head)
        piece = max(1, int(pace * _TURN_S))
        for start in range(0, len(self._ask.body), piece):
            await asyncio.sleep(min(piece, len(self._ask.body) - start) / pace)
            if self._transport is None or exchange.end_s is not None:
                return
            self._transport.write(self._ask.body[start : start + piece])

    def leave(self) -> None:
        """The client goes away, as it was asked to."""
        exchange, self._exchange = self._exchange, None
        self.left = True
        self.close()
        if exchange is not None:
            exchange.end(time.monotonic())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._ask.read_bytes_per_s is not None and self._fd is not None:
            # uvloop's own socket objects refuse to set options; a second one for the same socket.
            with socket.fromfd(self._fd, socket.AF_INET, socket.SOCK_STREAM) as same:
                same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SLOW_READER_BUFFER)

    def data_received(self, data: bytes) -> None:
        pace = self._ask.read_bytes_per_s
        if pace is None or self._transport is None:
            self._take(data)
            return
        # Until it has been read at this pace it has not come, and nothing further is taken in.
        self._transport.pause_reading()
        self._unread = data
        asyncio.get_running_loop().call_later(len(data) / pace, self._read_on)

    def connection_lost(self, exc: Exception | None) -> None:
        self._read_on()
        super().connection_lost(exc)

    def _read_on(self) -> None:
        data, self._unread = self._unread, b""
        if data:
            self._take(data)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _take(self, data: bytes) -> None:
        exchange = self._exchange
        super().data_received(data)
        self.understand()
        if exchange is None:
            return
        exchange.reads[-1] = b""  # understood: a long answer need not be kept twice
        if self._wanted_has_come(exchange):
            if self._exchange is not None:
                self.leave()
            else:  # all the rest came in the same read: it would have gone unread
                self.left = exchange.error is None

    def _wanted_has_come(self, exchange: Exchange) -> bool:
        wanted = self.events_wanted
        if wanted is None or exchange.status is None or exchange.status >= 400:
            return False  # a refusal is read to its end: it says why
        return wanted == 0 or len(read_events(exchange.body, complete=False)) >= wanted

    def understand(self) -> None:
        try:
            super().understand()
        except httptools.HttpParserUpgrade:
            self._whole()  # another protocol begins: as HTTP the answer is whole

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self._ask.method == "HEAD" and (self._parser.get_status_code() or 0) >= 200:
            self._whole()  # whatever its length says, no body follows

    def on_body(self, body: bytes) -> None:
        kept = body[: self._room]
        self._room -= len(kept)
        self.truncated = self.truncated or len(kept) < len(body)
        if kept:
            super().on_body(kept)

    def _whole(self) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.complete = True
            exchange.end(time.monotonic())
            self.close()
