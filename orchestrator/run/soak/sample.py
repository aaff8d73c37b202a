"""Which requests of a window are kept as they were: a rule, not chance."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.measure.latency import ttft_s
from orchestrator.records import RequestRecord

FAILED_MOST = 50
SLOWEST = 5
EVENLY = 20


class RawSample:
    """Of one arm's window: failed ones (the first 50), the five slowest to their first token, and
    about every n-th, twenty in all."""

    def __init__(self) -> None:
        self._failed: list[RequestRecord] = []
        self._slowest: list[tuple[float, RequestRecord]] = []
        self._evenly: list[RequestRecord] = []
        self._stride, self._seen = 1, 0

    def add(self, records: Sequence[RequestRecord]) -> None:
        for record in records:
            if not record.completed and len(self._failed) < FAILED_MOST:
                self._failed.append(record)
                continue
            wait = ttft_s(record)
            if wait is not None:
                self._slowest.append((wait, record))
            if self._seen % self._stride == 0:
                self._evenly.append(record)
            self._seen += 1
            if len(self._evenly) >= 2 * EVENLY:
                self._evenly, self._stride = self._evenly[::2], 2 * self._stride
        self._slowest.sort(key=lambda pair: -pair[0])
        del self._slowest[SLOWEST:]

    def records(self) -> list[RequestRecord]:
        chosen = [*self._failed, *(record for _, record in self._slowest), *self._evenly]
        return list({record.request_id: record for record in chosen}.values())
