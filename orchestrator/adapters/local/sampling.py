"""A thread that reads something every so often until it is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from orchestrator.records import Sample

PERIOD_S = 0.25
_LAST_AFTER = 0.2
"""A last reading at the stop is taken when this fraction of a period has passed since the one
before; differences over less are mostly the kernel's rounding."""


class SamplingRun:
    """Implements ports.TelemetryRun. The first reading comes one period after the start."""

    def __init__(
        self,
        read: Callable[[], Mapping[str, float]],
        period_s: float = PERIOD_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._period_s, self._clock = read, period_s, clock
        self._samples: list[Sample] = []
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._started_s = self._latest_s = clock()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def stop(self) -> tuple[Sample, ...]:
        """The samples; a second call returns them again.

        Raises: what the reading raised, if it broke: missing readings are never passed over.
        """
        if not self._stopping.is_set():
            self._stopping.set()
            self._thread.join()
            if self._failure is None and self._since_latest() >= _LAST_AFTER * self._period_s:
                self._take()
        if self._failure is not None:
            raise self._failure
        return tuple(self._samples)

    def _run(self) -> None:
        try:
            due = self._started_s + self._period_s
            while not self._stopping.wait(max(0.0, due - self._clock())):
                self._take()
                # From the plan, not from now, so that readings do not drift; what was missed
                # while the machine was busy is not made up for.
                due = max(due + self._period_s, self._clock())
        except BaseException as error:  # noqa: BLE001 - handed to the caller of stop()
            self._failure = error

    def _take(self) -> None:
        values = dict(self._read())
        self._latest_s = self._clock()
        if values:
            self._samples.append(Sample(self._latest_s - self._started_s, values))

    def _since_latest(self) -> float:
        return self._clock() - self._latest_s
