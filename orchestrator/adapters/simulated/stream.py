"""Continuous load on simulated engines, side by side on virtual time; and what goes wrong there."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.adapters.simulated.drive import Watch
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.load_client import job_of, record_of
from orchestrator.adapters.simulated.world import Room, SimulatedWorld
from orchestrator.plan.block import Timeouts
from orchestrator.plan.fresh import FreshRequests
from orchestrator.ports import (
    Endpoint,
    FaultUnavailable,
    Injection,
    OfferedLoad,
)
from orchestrator.records import Arm, RequestError, RequestRecord

RETRY_S = 1.0


class SimulatedSoak:
    """Opens streams (ports.OpenStream) and makes things go wrong in them (ports.FaultInjector)."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._stream: SimulatedStream | None = None

    def open(
        self,
        endpoints: Mapping[Arm, Endpoint],
        requests: FreshRequests,
        *,
        first_index: int,
        timeouts: Timeouts,
    ) -> SimulatedStream:
        self._stream = SimulatedStream(self._world, endpoints, requests, first_index, timeouts)
        return self._stream

    def way_to(self, arm: Arm, endpoint: Endpoint, kinds: Sequence[str]) -> Endpoint:
        return endpoint

    def inject(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Injection:
        kind = fault["kind"]
        engines = [room.engine for arm in endpoints if (room := self._world.at(endpoints[arm]))]
        if kind == "engine_killed":
            for engine in engines:
                self._world.enter(engine)
                engine.crash()
            return _Nothing()
        if kind == "worker_stopped":
            for engine in engines:
                engine.stop_for(fault["lasts"])
            return _Nothing()
        if kind == "network_cut" and self._stream is not None:
            return self._stream.cut(fault["lasts"])
        raise FaultUnavailable(f"simulated engines know no {kind}")

    def close(self) -> None:
        """Nothing is held."""


class _Nothing:
    def undo(self) -> None:
        """It ends by itself."""


class SimulatedStream:
    """Implements ports.LoadStream."""

    def __init__(
        self,
        world: SimulatedWorld,
        endpoints: Mapping[Arm, Endpoint],
        requests: FreshRequests,
        first_index: int,
        timeouts: Timeouts,
    ) -> None:
        self._world, self._requests, self._timeouts = world, requests, timeouts
        self._began_s = world.now_s
        self._load = OfferedLoad(concurrency=0)
        self._lanes = {
            arm: _Lane(self._room(endpoint), requests, first_index, timeouts, world.now_s)
            for arm, endpoint in endpoints.items()
        }

    def offer(self, load: OfferedLoad) -> None:
        self._load = load
        for lane in self._lanes.values():
            lane.offer(load, self._world.now_s)

    def run_until(self, at_s: float) -> Mapping[Arm, Sequence[RequestRecord]]:
        """Both arms from the same moment on, one after the other."""
        until_s = self._began_s + at_s
        found = {}
        for arm, lane in self._lanes.items():
            with lane.room.lock:
                lane.run(until_s)
            found[arm] = [record_of(job, self._began_s) for job in lane.taken()]
        for lane in self._lanes.values():
            self._world.leave(lane.room.engine)
        return found

    def redirect(self, arm: Arm, endpoint: Endpoint) -> None:
        lane, room = self._lanes[arm], self._room(endpoint)
        if room is not lane.room:
            lane.move(room, self._world.now_s)

    def now_s(self) -> float:
        return self._world.now_s - self._began_s

    def in_flight(self) -> int:
        return sum(lane.in_flight for lane in self._lanes.values())

    def next_index(self) -> int:
        return max(lane.index for lane in self._lanes.values())

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.drop(self._world.now_s, RequestError.CANCELLED, "the soak has ended")

    def cut(self, seconds: float) -> Injection:
        """Nobody gets through to any arm for so long."""
        for lane in self._lanes.values():
            lane.cut_until_s = self._world.now_s + seconds
            lane.drop(self._world.now_s, RequestError.RESET, "connection reset: the way is cut")
        return _Cut(self._heal)

    def _heal(self) -> None:
        for lane in self._lanes.values():
            lane.cut_until_s = 0.0

    def _room(self, endpoint: Endpoint) -> Room:
        room = self._world.at(endpoint)
        if room is None:
            raise ValueError(f"no simulated engine answers at {endpoint.base_url}")
        return room


class _Cut:
    def __init__(self, heal: Callable[[], None]) -> None:
        self.undo = heal


class _Lane:
    """One arm's load; times on the world's clock."""

    def __init__(
        self,
        room: Room,
        requests: FreshRequests,
        index: int,
        timeouts: Timeouts,
        now_s: float,
    ) -> None:
        self.room, self.index, self.cut_until_s = room, index, 0.0
        self._requests, self._timeouts = requests, timeouts
        self._watch = Watch(timeouts)
        self._flying: dict[int, Job] = {}
        self._ended: list[Job] = []
        self._starts: list[float] = []
        """When a slot of a closed loop sends next."""
        self._load = OfferedLoad(concurrency=0)
        self._arrivals = random.Random(f"arrivals {requests.seed} {index}")
        self._arrives_s = math.inf
        room.engine.idle_until(now_s)

    def offer(self, load: OfferedLoad, now_s: float) -> None:
        self._load = load
        self._arrives_s = math.inf
        if load.rate_rps is not None:
            self._starts.clear()
            self._arrives_s = now_s + self._gap()
            return
        wanted = load.concurrency or 0
        while len(self._flying) + len(self._starts) > wanted and self._starts:
            self._starts.pop()
        while len(self._flying) + len(self._starts) < wanted:
            heapq.heappush(self._starts, now_s)

    def run(self, until_s: float) -> None:
        engine = self.room.engine
        self._collect()
        while True:
            due_s = self._due_s()
            if due_s <= engine.now_s and due_s < until_s:
                self._send(due_s)
                continue
            if engine.now_s >= until_s:
                return
            target_s = min(until_s, due_s, self._watch.next_s() or math.inf)
            before_s = engine.now_s
            if engine.scheduler.has_work and not engine.hung and not engine.crashed:
                engine.run(target_s)
            if engine.now_s == before_s:
                # Nothing to do, or nothing that could be done: time goes on all the same.
                engine.idle_until(target_s if target_s > before_s else until_s)
            self._watch.overdue(engine)
            self._collect()

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    def taken(self) -> list[Job]:
        taken, self._ended = self._ended, []
        return taken

    def drop(self, at_s: float, error: RequestError, text: str) -> None:
        """Everything in flight ends now."""
        for job in self._flying.values():
            if job.end_s is None:
                self.room.engine.abort(job)
                job.fail(error, text, at_s)
        self._collect()

    def move(self, room: Room, now_s: float) -> None:
        self.drop(now_s, RequestError.RESET, "connection reset: the engine is gone")
        self.room, self._watch = room, Watch(self._timeouts)
        room.engine.idle_until(now_s)

    def _due_s(self) -> float:
        return min(self._arrives_s, self._starts[0] if self._starts else math.inf)

    def _send(self, due_s: float) -> None:
        if due_s == self._arrives_s:
            self._arrives_s = due_s + self._gap()
        else:
            heapq.heappop(self._starts)
        fresh = self._requests.request(self.index)
        self.index += 1
        job = job_of(
            fresh.planned,
            self.room.configuration,
            temperature=self._requests.temperature,
            fixed_length=fresh.fixed_length,
        )
        self._flying[id(job)] = job
        if due_s < self.cut_until_s:
            job.arrival_s = due_s
            job.fail(RequestError.CONNECT, "connection refused: the way is cut", due_s)
        elif self.room.engine.submit(job):
            job.arrival_s = due_s
            self._watch.add(job)
        else:
            job.arrival_s = due_s
            job.end_s = max(due_s, job.end_s or due_s)
        if job.end_s is not None:
            self._collect()

    def _collect(self) -> None:
        """What has ended, whoever drove the engine; each slot sends again."""
        for key, job in list(self._flying.items()):
            if job.end_s is None:
                continue
            del self._flying[key]
            self._ended.append(job)
            closed = self._load.rate_rps is None
            free = len(self._flying) + len(self._starts) < (self._load.concurrency or 0)
            if closed and free:
                wait_s = 0.0 if job.error is None else RETRY_S
                heapq.heappush(self._starts, job.end_s + wait_s)

    def _gap(self) -> float:
        rate = self._load.rate_rps
        return self._arrivals.expovariate(rate) if rate else math.inf
