"""Runs requests through a simulated engine, event by event, on virtual time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from itertools import count

from orchestrator.adapters.simulated.engine import SimulatedEngine
from orchestrator.adapters.simulated.job import Job
from orchestrator.plan.block import Timeouts
from orchestrator.records import RequestError

Arrival = tuple[float, Job]
OnEnd = Callable[[Job], Iterable[Arrival]]
"""What arrives because this request ended: the next one of a closed loop, the next turn."""


def drive(
    engine: SimulatedEngine,
    arrivals: Iterable[Arrival],
    on_end: OnEnd = lambda job: (),
    timeouts: Timeouts | None = None,
) -> None:
    """Feeds arrivals (on the engine's clock) until everything has ended.

    Raises: RuntimeError if the engine hangs and there is no timeout to end the wait.
    """
    order = count()
    agenda = [(at_s, next(order), job) for at_s, job in arrivals]
    heapq.heapify(agenda)
    watch = Watch(timeouts)
    while agenda or engine.scheduler.has_work:
        while agenda and agenda[0][0] <= engine.now_s:
            at_s, _, job = heapq.heappop(agenda)
            accepted = engine.submit(job)
            # A request waits for the step in flight, but it was sent when it was sent.
            job.arrival_s = at_s
            if accepted:
                watch.add(job)
            else:
                job.end_s = max(at_s, job.end_s or at_s)
                _extend(agenda, on_end(job), order)
        if engine.scheduler.has_work:
            deadline_s = watch.next_s()
            until_s = agenda[0][0] if agenda else math.inf
            ended = engine.run(until_s if deadline_s is None else min(until_s, deadline_s))
            if engine.hung and not ended:
                _wait_out(engine, agenda, watch)
        elif agenda:
            engine.idle_until(agenda[0][0])
            ended = []
        else:
            break
        for job in watch.overdue(engine):
            if job not in ended:
                ended.append(job)
        for job in ended:
            _extend(agenda, on_end(job), order)


def _extend(
    agenda: list[tuple[float, int, Job]], arrivals: Iterable[Arrival], order: count[int]
) -> None:
    for at_s, job in arrivals:
        heapq.heappush(agenda, (at_s, next(order), job))


def _wait_out(engine: SimulatedEngine, agenda: list[tuple[float, int, Job]], watch: Watch) -> None:
    """A hung engine: time goes on to the next arrival or the next timeout."""
    candidates = (watch.next_s(), agenda[0][0] if agenda else None)
    moments = [at_s for at_s in candidates if at_s is not None]
    if not moments:
        raise RuntimeError("the simulated engine hangs and no timeout ends the wait")
    engine.idle_until(min(moments))


class Watch:
    """Deadlines of the client, looked at lazily: a chunk moves a deadline, the heap does not."""

    def __init__(self, timeouts: Timeouts | None) -> None:
        self._timeouts = timeouts
        self._order = count()
        self._heap: list[tuple[float, int, Job]] = []

    def add(self, job: Job) -> None:
        if self._timeouts is not None:
            deadline_s, _ = self._deadline(job, self._timeouts, job.arrival_s)
            heapq.heappush(self._heap, (deadline_s, next(self._order), job))

    def next_s(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def overdue(self, engine: SimulatedEngine) -> list[Job]:
        """Requests whose client gave up by now; they are taken out of the engine."""
        late: list[Job] = []
        while self._timeouts is not None and self._heap and self._heap[0][0] <= engine.now_s:
            _, _, job = heapq.heappop(self._heap)
            if job.end_s is not None and job.end_s < engine.now_s:
                continue
            deadline_s, error = self._deadline(job, self._timeouts, engine.now_s)
            if deadline_s > engine.now_s:
                if job.end_s is None:
                    heapq.heappush(self._heap, (deadline_s, next(self._order), job))
                continue
            if job.chunk_s and job.chunk_s[-1] > deadline_s:
                # It came out of this very step, after the client had gone.
                job.chunk_s.pop()
                job.chunk_tokens.pop()
            engine.abort(job)
            job.fail(error, f"nothing came before the client's {error.value}", deadline_s)
            late.append(job)
        return late

    def _deadline(self, job: Job, timeouts: Timeouts, now_s: float) -> tuple[float, RequestError]:
        """When the client gives up, judged by the chunks that came before `now_s`."""
        seen = [at_s for at_s in job.chunk_s[-2:] if at_s < now_s]
        phase = (
            (seen[-1] + timeouts.stall_s, RequestError.STALL_TIMEOUT)
            if seen
            else (job.arrival_s + timeouts.first_token_s, RequestError.FIRST_TOKEN_TIMEOUT)
        )
        return min(phase, (job.arrival_s + timeouts.total_s, RequestError.TOTAL_TIMEOUT))
