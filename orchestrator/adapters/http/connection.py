"""One keep-alive connection, and what it recorded of one exchange.

The hot path stores the time and the bytes of every read and nothing else. HTTP framing is read
only when the bytes look like the end of a response (or when somebody asks), SSE and JSON after
that: so that the work of understanding a chunk does not delay the time stamp of the next one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import cast

import httptools

from orchestrator.adapters.http.answer import ERROR_TEXT_LIMIT
from orchestrator.records import RequestError

_monotonic = time.monotonic
_PILE = 0x7F


class Exchange:
    """One request and its response, as raw as they came. Times are on the monotonic clock."""

    __slots__ = (
        "body", "complete", "content_type", "end_s", "error", "error_text", "on_end", "read_s",
        "reads", "sent_s", "status",
    )  # fmt: skip

    def __init__(self, on_end: Callable[[], None]) -> None:
        self.on_end = on_end
        self.sent_s: float | None = None
        self.read_s: list[float] = []
        self.reads: list[bytes] = []
        self.body: list[tuple[float, bytes]] = []
        self.status: int | None = None
        self.content_type = ""
        self.complete = False
        self.end_s: float | None = None
        self.error: RequestError | None = None
        self.error_text: str | None = None

    def end(self, at_s: float, error: RequestError | None = None, text: str | None = None) -> None:
        """The exchange is over; only the first call counts."""
        if self.end_s is not None:
            return
        self.end_s, self.error = at_s, error
        self.error_text = None if text is None else text[:ERROR_TEXT_LIMIT]
        self.on_end()


class Connection(asyncio.Protocol):
    """Carries one exchange at a time."""

    def __init__(self, on_lost: Callable[[Connection], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._fd: int | None = None
        self._exchange: Exchange | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._understood = 0
        self._chunked = False
        self._lazy = False

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, exchange: Exchange, request: bytes) -> None:
        if self._transport is None:
            exchange.end(_monotonic(), RequestError.CONNECT, "connection closed before sending")
            return
        self._exchange = exchange
        self._understood = 0
        self._lazy = self._chunked = False
        left = self._write_now(request)
        if left:
            self._transport.write(left)

    def _write_now(self, request: bytes) -> bytes:
        """Hands the request to the kernel at once, and returns what it did not take.

        uvloop keeps writes until the end of the loop's turn: of many requests sent in one turn the
        first would leave long after its `sent_s`. With TLS only the transport can write.
        """
        if self._fd is None:
            return request
        try:
            return request[os.write(self._fd, request) :]
        except OSError:
            return request  # full, or broken: the transport finds out, and tells

    def abandon(self, error: RequestError, text: str) -> None:
        """Gives up the exchange in progress; the connection cannot be used again."""
        exchange, self._exchange = self._exchange, None
        self.close()
        if exchange is not None:
            exchange.end(_monotonic(), error, text)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast: uvloop's transports are not registered as asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        if transport.get_extra_info("ssl_object") is None:
            self._fd = transport.get_extra_info("socket").fileno()

    def data_received(self, data: bytes) -> None:
        now_s = _monotonic()
        exchange = self._exchange
        if exchange is None:
            # Nothing was asked: the stream is out of step, or the server says goodbye.
            self.close()
            return
        exchange.read_s.append(now_s)
        exchange.reads.append(data)
        # A chunked response ends in an empty line after the last chunk. Every other read is only
        # kept; one that merely looks like the end is understood early, which does no harm. Now and
        # then what piled up is understood too, so that the end of a long answer is no stall.
        if (
            self._lazy
            and len(data) > 4
            and not data.endswith(b"\r\n\r\n")
            and len(exchange.reads) & _PILE
        ):
            return
        self.understand()

    def eof_received(self) -> None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._exchange is not None:
            self.understand()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            now_s = _monotonic()
            if exc is None and exchange.status is not None and self._ends_with_the_connection:
                exchange.complete = True
                exchange.end(exchange.read_s[-1])
            elif exc is None and exchange.reads:
                exchange.end(now_s, RequestError.TRUNCATED, "connection closed in mid-response")
            elif exc is None:
                exchange.end(now_s, RequestError.RESET, "connection closed without a response")
            else:
                exchange.end(now_s, RequestError.RESET, str(exc) or type(exc).__name__)
        self._on_lost(self)

    # What is understood of HTTP, later.

    def understand(self) -> None:
        """Reads the HTTP framing of everything received so far."""
        exchange = self._exchange
        if exchange is None:
            return
        try:
            while self._exchange is exchange and self._understood < len(exchange.reads):
                self._understood += 1
                self._parser.feed_data(exchange.reads[self._understood - 1])
        except httptools.HttpParserError as fault:
            self.abandon(RequestError.PROTOCOL, f"not HTTP/1.1: {fault}")

    _ends_with_the_connection = False

    def on_header(self, name: bytes, value: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        lower = name.lower()
        if lower == b"content-type":
            exchange.content_type = value.decode("latin-1")
        elif lower == b"transfer-encoding":
            self._chunked = value.lower().endswith(b"chunked")
            self._ends_with_the_connection = not self._chunked
        elif lower == b"content-length":
            self._ends_with_the_connection = False

    def on_message_begin(self) -> None:
        self._ends_with_the_connection = True

    def on_headers_complete(self) -> None:
        if self._exchange is not None:
            self._exchange.status = self._parser.get_status_code()
            self._lazy = self._chunked

    def on_body(self, body: bytes) -> None:
        exchange = self._exchange
        if exchange is not None:
            exchange.body.append((exchange.read_s[self._understood - 1], body))

    def on_message_complete(self) -> None:
        exchange = self._exchange
        if exchange is None or (exchange.status is not None and exchange.status < 200):
            return  # 100 Continue and its like come before the response
        self._exchange = None
        exchange.complete = True
        if not self._parser.should_keep_alive():
            self.close()
        exchange.end(exchange.read_s[self._understood - 1])
