"""One exchange with a server, under limits of time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from orchestrator.adapters.http.connection import Connection, Exchange
from orchestrator.adapters.http.outcome import answer_of
from orchestrator.adapters.http.pool import ConnectionPool
from orchestrator.plan.block import Timeouts
from orchestrator.records import RequestError

_SOONEST_S = 0.002
NOT_SENT = "not sent: the queue grew without bound and the block was given up"


async def exchange_once(
    pool: ConnectionPool,
    request: bytes,
    limits: Timeouts,
    begun: Callable[[Exchange], None] = lambda exchange: None,
) -> Exchange:
    """Sends one request and waits for the end of its response, whatever that is. Never raises.

    `begun` is given the exchange as soon as it is under way, for whoever watches it.

    `sent_s` is when the client turned to the request: if there is no idle connection, the time to
    open one is part of what the server's user waits for.
    A kept-alive connection may be closed by the server in the moment it is used again; a request
    that got not one byte on such a connection is sent once more on a fresh one (RFC 9112 §9.3.1).
    """
    sent_s = time.monotonic()
    connection = pool.take_idle()
    if connection is not None:
        exchange = await _send(pool, connection, request, limits, sent_s, begun)
        if exchange.read_s or exchange.error is not RequestError.RESET:
            return exchange
    try:
        connection = await pool.connect(limits.connect_s)
    except TimeoutError:
        text = f"no connection within {limits.connect_s:g} s"
        return _never_sent(sent_s, RequestError.CONNECT_TIMEOUT, text)
    except OSError as fault:
        return _never_sent(sent_s, RequestError.CONNECT, str(fault))
    return await _send(pool, connection, request, limits, sent_s, begun)


async def _send(
    pool: ConnectionPool,
    connection: Connection,
    request: bytes,
    limits: Timeouts,
    sent_s: float,
    begun: Callable[[Exchange], None],
) -> Exchange:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def finish() -> None:
        if not ended.done():
            ended.set_result(None)

    exchange = Exchange(finish)
    exchange.sent_s = sent_s
    begun(exchange)
    watch = _Watch(loop, connection, exchange, limits)
    connection.send(exchange, request)
    try:
        await ended
    except asyncio.CancelledError:
        connection.abandon(RequestError.CANCELLED, "the block was given up")
        raise
    finally:
        watch.stop()
    exchange.reads.clear()
    pool.give_back(connection)
    return exchange


def never_sent() -> Exchange:
    """What stands for a request that was planned and not sent."""
    exchange = Exchange(lambda: None)
    exchange.error, exchange.error_text = RequestError.CANCELLED, NOT_SENT
    return exchange


def _never_sent(sent_s: float, error: RequestError, text: str) -> Exchange:
    exchange = Exchange(lambda: None)
    exchange.sent_s = sent_s
    exchange.end(time.monotonic(), error, text)
    return exchange


class _Watch:
    """Ends an exchange that passes a limit.

    One timer a request, never moved while chunks arrive: when it rings, what came so far is read
    to find out how long the stream has really been silent. Comments do not count as progress.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        exchange: Exchange,
        limits: Timeouts,
    ) -> None:
        assert exchange.sent_s is not None
        self._loop, self._connection, self._exchange = loop, connection, exchange
        self._limits, self._sent_s = limits, exchange.sent_s
        first_s = min(limits.first_token_s, limits.total_s)
        self._handle = loop.call_later(max(first_s, _SOONEST_S), self._ring)

    def stop(self) -> None:
        self._handle.cancel()

    def _ring(self) -> None:
        self._connection.understand()
        if self._exchange.end_s is not None:
            return
        limits = self._limits
        chunks = answer_of(self._exchange).chunk_s
        deadlines = [(self._sent_s + limits.total_s, RequestError.TOTAL_TIMEOUT, limits.total_s)]
        if chunks:
            silent = (chunks[-1] + limits.stall_s, RequestError.STALL_TIMEOUT, limits.stall_s)
        else:
            until_s = self._sent_s + limits.first_token_s
            silent = (until_s, RequestError.FIRST_TOKEN_TIMEOUT, limits.first_token_s)
        due_s, error, limit_s = min(*deadlines, silent)
        left_s = due_s - time.monotonic()
        if left_s <= 0:
            self._connection.abandon(error, f"limit of {limit_s:g} s passed")
        else:
            self._handle = self._loop.call_later(max(left_s, _SOONEST_S), self._ring)
