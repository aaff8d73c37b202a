"""Load on one server that goes on until it is told otherwise: closed loop, or Poisson arrivals."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

from orchestrator.adapters.http.connection import Exchange
from orchestrator.adapters.http.exchange import exchange_once
from orchestrator.adapters.http.outcome import answer_of, record_of
from orchestrator.adapters.http.pool import ConnectionPool
from orchestrator.adapters.http.request import RequestWriter, UsageWanted, opening
from orchestrator.plan.block import BlockPlan, Message, PlannedRequest, Timeouts
from orchestrator.plan.fresh import FreshRequest, FreshRequests
from orchestrator.plan.trial import LoadPoint, Sampling
from orchestrator.ports import Endpoint, OfferedLoad
from orchestrator.records import RequestError, RequestRecord

RETRY_S = 1.0
"""A slot whose request failed waits so long: a dead server is not stormed."""
IN_FLIGHT_MOST = 4096
"""Of arrivals by rate: past it a request is not sent, and is recorded so. Memory is bounded."""


class Collected(NamedTuple):
    """What has ended since the last time, the next request's index, and how many are in flight."""

    records: list[RequestRecord]
    next_index: int
    in_flight: int


class StreamLoad:
    """One arm's load. Times of the records are seconds after `start_s` (monotonic)."""

    def __init__(
        self,
        requests: FreshRequests,
        first_index: int,
        timeouts: Timeouts,
        start_s: float,
        usage: UsageWanted,
    ) -> None:
        self._requests, self._index = requests, first_index
        self._timeouts, self._start_s, self._usage = timeouts, start_s, usage
        self._ended: list[RequestRecord] = []
        self._flying: set[asyncio.Task[bool]] = set()
        self._slots = self._wanted = 0
        self._arrivals: asyncio.Task[None] | None = None
        self._random = random.Random(f"arrivals {requests.seed} {first_index}")
        self._endpoint: Endpoint
        self._pool: ConnectionPool
        self._writers: dict[tuple[str, bool], RequestWriter] = {}

    def point_at(self, endpoint: Endpoint, pool: ConnectionPool) -> None:
        """Where requests are sent from now on."""
        self._endpoint, self._pool = endpoint, pool
        self._writers.clear()

    def offer(self, load: OfferedLoad) -> None:
        if self._arrivals is not None:
            self._arrivals.cancel()
            self._arrivals = None
        self._wanted = load.concurrency or 0 if load.rate_rps is None else 0
        while self._slots < self._wanted:
            self._slots += 1
            self._start(self._slot())
        if load.rate_rps is not None and load.rate_rps > 0:
            self._arrivals = asyncio.get_running_loop().create_task(self._arrive(load.rate_rps))

    async def collect(self, until_s: float) -> Collected:
        await asyncio.sleep(max(0.0, until_s - time.monotonic()))
        ended, self._ended = self._ended, []
        return Collected(ended, self._index, len(self._flying))

    async def finish(self) -> None:
        self.offer(OfferedLoad(concurrency=0))
        flying = list(self._flying)
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)

    async def _slot(self) -> bool:
        """One request after the other, as long as so many are wanted."""
        try:
            while self._slots <= self._wanted:
                if not await self._one(self._next()):
                    await asyncio.sleep(RETRY_S)
            return True
        finally:
            self._slots -= 1

    async def _arrive(self, rate_rps: float) -> None:
        """From the plan, not from now: a late loop sends what is due at once."""
        due_s = time.monotonic()
        while True:
            due_s += self._random.expovariate(rate_rps)
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            fresh = self._next()
            if len(self._flying) >= IN_FLIGHT_MOST:
                self._ended.append(_not_sent(fresh.planned))
            else:
                self._start(self._one(fresh))

    def _start(self, work: Coroutine[Any, Any, bool]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)

    def _next(self) -> FreshRequest:
        fresh = self._requests.request(self._index)
        self._index += 1
        return fresh

    async def _one(self, fresh: FreshRequest) -> bool:
        """Whether it was answered."""
        planned = fresh.planned
        text = planned.prompt.turns[0]
        wire = self._writer(fresh).request(
            planned, [*opening(planned.prompt), Message("user", text)]
        )
        exchange: Exchange = await exchange_once(self._pool, wire, self._timeouts)
        record = record_of(planned, 0, exchange, answer_of(exchange), self._start_s)
        self._ended.append(record)
        return record.completed

    def _writer(self, fresh: FreshRequest) -> RequestWriter:
        key = (fresh.endpoint, fresh.fixed_length)
        if key not in self._writers:
            sampling = Sampling(
                temperature=self._requests.temperature, seeded=self._requests.temperature > 0
            )
            block = BlockPlan(
                requests=(),
                load=LoadPoint("closed", concurrency=1),
                sampling=sampling,
                endpoint=fresh.endpoint,
                fixed_length=fresh.fixed_length,
                history="first_turn",
                timeouts=self._timeouts,
            )
            self._writers[key] = RequestWriter(self._endpoint, block, self._usage)
        return self._writers[key]


def _not_sent(planned: PlannedRequest) -> RequestRecord:
    return RequestRecord(
        request_id=planned.request_id,
        prompt_id=planned.prompt.id,
        category=planned.prompt.category,
        turn=0,
        offset_s=None,
        sent_s=None,
        chunk_s=(),
        chunk_tokens=None,
        end_s=None,
        input_tokens=None,
        output_tokens=None,
        max_tokens=planned.max_tokens,
        finish_reason=None,
        text="",
        error=RequestError.CANCELLED,
        error_text=f"not sent: {IN_FLIGHT_MOST} requests were in flight",
    )
