"""`ports.LoadStream` over HTTP: one process an arm, so that neither waits for the other."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from orchestrator.adapters.http.client import Worker, picklable, replies_of
from orchestrator.adapters.http.pool import Tls
from orchestrator.adapters.http.request import UsageWanted
from orchestrator.adapters.http.session import ClientOptions
from orchestrator.adapters.http.stream_load import Collected
from orchestrator.plan.block import Timeouts
from orchestrator.plan.fresh import FreshRequests
from orchestrator.ports import Endpoint, OfferedLoad
from orchestrator.records import Arm, RequestRecord

_NO_TLS_OPTIONS = Tls()


class HttpStream:
    """Its processes end with `close`, or with this one. Raises: ClientFailed when one died."""

    def __init__(
        self,
        endpoints: Mapping[Arm, Endpoint],
        requests: FreshRequests,
        *,
        first_index: int,
        timeouts: Timeouts,
        usage: UsageWanted = "continuous",
        tls: Tls = _NO_TLS_OPTIONS,
        cpus: Collection[int] | None = None,
    ) -> None:
        self._index = first_index
        self._in_flight: dict[Arm, int] = dict.fromkeys(endpoints, 0)
        self._workers: dict[Arm, Worker] = {}
        try:
            for arm in endpoints:
                self._workers[arm] = Worker(ClientOptions(usage, tls), cpus)
            self._start_s = time.monotonic()
            for arm, endpoint in endpoints.items():
                plain = picklable(endpoint)
                self._workers[arm].send(
                    "begin", plain, requests, first_index, timeouts, self._start_s
                )
            replies_of(list(self._workers.values()), Worker.receive)
        except BaseException:
            self.close()
            raise

    def offer(self, load: OfferedLoad) -> None:
        for worker in self._workers.values():
            worker.send("offer", load)
        replies_of(list(self._workers.values()), Worker.receive)

    def run_until(self, at_s: float) -> Mapping[Arm, Sequence[RequestRecord]]:
        for worker in self._workers.values():
            worker.send("collect", self._start_s + at_s)
        found: dict[Arm, Sequence[RequestRecord]] = {}
        for arm, worker in self._workers.items():
            seen: Collected = worker.receive()
            found[arm] = seen.records
            self._index = max(self._index, seen.next_index)
            self._in_flight[arm] = seen.in_flight
        return found

    def redirect(self, arm: Arm, endpoint: Endpoint) -> None:
        worker = self._workers[arm]
        worker.send("redirect", picklable(endpoint))
        worker.receive()

    def now_s(self) -> float:
        return time.monotonic() - self._start_s

    def in_flight(self) -> int:
        return sum(self._in_flight.values())

    def next_index(self) -> int:
        return self._index

    def close(self) -> None:
        """The processes end with what they have in flight."""
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            worker.stop()
