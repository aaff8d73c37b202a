"""Runs one block in this process: the closed loop, the open loop, and both clocks."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.adapters.http.alarm import make_alarm
from orchestrator.adapters.http.connection import Exchange
from orchestrator.adapters.http.exchange import exchange_once, never_sent
from orchestrator.adapters.http.health import HealthProbe
from orchestrator.adapters.http.outcome import answer_of, fault_of, record_of
from orchestrator.adapters.http.pool import ConnectionPool
from orchestrator.adapters.http.request import RequestWriter, opening, turns_to_send
from orchestrator.plan.block import BlockPlan, Message
from orchestrator.ports import BlockObservation
from orchestrator.records import RequestRecord

if TYPE_CHECKING:
    from orchestrator.adapters.http.queue_watch import QueueWatch

WARM_CONNECTIONS_OPEN_LOOP = 32
KEEP_BYTES = 256 * 1024 * 1024
"""Raw answers kept to be read after the block. Past it, each is read when it ends: the loop then
stands still for some microseconds a token, which loop lag shows, but memory is bounded."""


class BlockLoad:
    """One block, ready to start. Build it ahead: writing the requests takes time of its own."""

    def __init__(self, pool: ConnectionPool, writer: RequestWriter, block: BlockPlan) -> None:
        self._pool, self._writer, self._block = pool, writer, block
        self._turns = [turns_to_send(each.prompt, block.history) for each in block.requests]
        self._first = [
            writer.request(each, [*opening(each.prompt), Message("user", turns[0])])
            for each, turns in zip(block.requests, self._turns, strict=True)
        ]
        self._seen: list[list[Exchange | RequestRecord]] = [[] for _ in block.requests]
        self._kept_bytes = 0
        self._lags: list[float] = []
        self._start_s = 0.0
        self._watch = _queue_watch() if block.load.mode == "open" else None

    async def warm(self) -> None:
        """Opens the connections the block will need at its start."""
        load, planned = self._block.load, len(self._block.requests)
        wanted = load.concurrency or 1 if load.mode == "closed" else WARM_CONNECTIONS_OPEN_LOOP
        await self._pool.warm(min(planned, wanted), self._block.timeouts.connect_s)

    async def run(self, start_s: float) -> BlockObservation:
        """Sends everything, from `start_s` on the monotonic clock, and reads what came."""
        loop = asyncio.get_running_loop()
        probe = HealthProbe(loop)
        self._start_s = start_s
        with _no_collection():
            await _until(loop, start_s)
            started_unix_s = time.time() - (time.monotonic() - start_s)
            probe.start()
            if self._block.load.mode == "closed":
                await self._closed_loop()
            else:
                await self._open_loop(loop)
            health = probe.stop(self._lags)
        records = self._records()
        ends = [record.end_s for record in records if record.end_s is not None]
        gave_up = self._watch.finding if self._watch is not None else None
        return BlockObservation(started_unix_s, max(ends, default=0.0), records, health, gave_up)

    async def _closed_loop(self) -> None:
        waiting = iter(range(len(self._block.requests)))
        slots = min(self._block.load.concurrency or 1, len(self._block.requests))
        await asyncio.gather(*(self._slot(waiting) for _ in range(slots)))

    async def _slot(self, waiting: Iterator[int]) -> None:
        free_s = self._start_s
        for index in waiting:
            free_s = await self._converse(index, free_s)

    async def _open_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        order = sorted(range(len(self._block.requests)), key=self._offset)
        running: list[asyncio.Task[float]] = []
        all_sent = asyncio.Event()

        def ring() -> None:
            now_s = time.monotonic()
            while len(running) < len(order):
                if self._watch is not None and self._watch.finding is not None:
                    break
                index = order[len(running)]
                due_s = self._start_s + self._offset(index)
                if due_s > now_s:
                    alarm.set(due_s)
                    return
                running.append(loop.create_task(self._converse(index, due_s)))
            all_sent.set()

        alarm = make_alarm(loop, ring)
        try:
            ring()
            await all_sent.wait()
        finally:
            alarm.close()
        if len(running) < len(order):
            for task in running:
                task.cancel()
            for index in order[len(running) :]:
                self._seen[index].append(never_sent())
        # A conversation that was given up has noted what came of it.
        for outcome in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(
                outcome, asyncio.CancelledError
            ):
                raise outcome

    def _offset(self, index: int) -> float:
        request = self._block.requests[index]
        if request.offset_s is None:
            raise ValueError(
                f"request {request.request_id!r}: an open loop needs offset_s, got None; "
                "plan the block with orchestrator.plan.arrivals"
            )
        return request.offset_s

    async def _converse(self, index: int, due_s: float) -> float:
        """All turns of one conversation, up to the first that fails; returns when it ended."""
        planned, turns = self._block.requests[index], self._turns[index]
        history = [*opening(planned.prompt), Message("user", turns[0])]
        request = self._first[index]
        ended_s = due_s
        for turn in range(len(turns)):
            exchange = await self._exchange(index, turn, request)
            ended_s = exchange.end_s or time.monotonic()
            if turn == 0 and exchange.sent_s is not None:
                self._lags.append(exchange.sent_s - due_s)
            if turn + 1 == len(turns):
                break
            answer = answer_of(exchange)
            if fault_of(exchange, answer)[0] is not None:
                break
            said = answer.text
            if self._block.history == "reference":
                said = (planned.prompt.reference or ())[turn]
            history += [Message("assistant", said), Message("user", turns[turn + 1])]
            request = self._writer.request(planned, history)
        return ended_s

    async def _exchange(self, index: int, turn: int, request: bytes) -> Exchange:
        """One turn, noted however it ends."""
        live: list[Exchange] = []

        def begun(exchange: Exchange) -> None:
            live[:] = [exchange]
            if self._watch is not None and turn == 0:
                self._watch.came(index, exchange)

        try:
            exchange = await exchange_once(self._pool, request, self._block.timeouts, begun)
        except asyncio.CancelledError:
            self._keep(index, turn, live[0] if live else never_sent())
            raise
        if self._watch is not None and turn == 0:
            self._watch.left(index, exchange)
        self._keep(index, turn, exchange)
        return exchange

    def _keep(self, index: int, turn: int, exchange: Exchange) -> None:
        self._kept_bytes += sum(len(piece) for _, piece in exchange.body)
        full = self._kept_bytes > KEEP_BYTES
        self._seen[index].append(self._record(index, turn, exchange) if full else exchange)

    def _record(self, index: int, turn: int, seen: Exchange | RequestRecord) -> RequestRecord:
        if isinstance(seen, RequestRecord):
            return seen
        planned = self._block.requests[index]
        return record_of(planned, turn, seen, answer_of(seen), self._start_s)

    def _records(self) -> tuple[RequestRecord, ...]:
        return tuple(
            self._record(index, turn, seen)
            for index, turns in enumerate(self._seen)
            for turn, seen in enumerate(turns)
        )


def _queue_watch() -> QueueWatch:
    from orchestrator.adapters.http.queue_watch import QueueWatch  # numpy: only where it is needed

    return QueueWatch()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keeps the garbage collector from stopping the loop while times are taken."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


async def _until(loop: asyncio.AbstractEventLoop, at_s: float) -> None:
    reached = asyncio.Event()
    alarm = make_alarm(loop, reached.set)
    try:
        alarm.set(at_s)
        await reached.wait()
    finally:
        alarm.close()
