"""A window while it is open: figures, counters, telemetry and a sample, of both arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.ports import Endpoint, ServerProbe, Telemetry, TelemetryRun
from orchestrator.records import ARMS, Arm, CounterSnapshot, RequestRecord
from orchestrator.run.soak.sample import RawSample
from orchestrator.run.soak.window import Latencies, WindowOfArm


@dataclass(frozen=True)
class Instruments:
    endpoint: Callable[[Arm], Endpoint]
    probe: ServerProbe
    telemetry: Telemetry


class OpenWindow:
    """From its making to `close`; seconds on the soak's clock."""

    def __init__(self, instruments: Instruments, began_s: float) -> None:
        self.began_s = began_s
        self._instruments = instruments
        self._arms = {arm: WindowOfArm() for arm in ARMS}
        self.samples = {arm: RawSample() for arm in ARMS}
        self._before = {arm: self._read(arm) for arm in ARMS}
        self._runs: dict[Arm, TelemetryRun] = {
            arm: instruments.telemetry.start(instruments.endpoint(arm)) for arm in ARMS
        }
        self._load_seconds = self._seconds = 0.0
        self.burst = self.fault = False

    def add(self, arm: Arm, records: Sequence[RequestRecord], totals: Latencies) -> None:
        self._arms[arm].add(records)
        self.samples[arm].add(records)
        for record in records:
            if record.completed:
                totals.add(record)

    def passed(self, seconds: float, level: float) -> None:
        """So long at this load."""
        self._seconds += seconds
        self._load_seconds += seconds * level

    def close(self, ended_s: float, phase: str, life: Mapping[Arm, int]) -> dict[str, Any]:
        """The window's row."""
        seconds = ended_s - self.began_s
        arms = {}
        for arm in ARMS:
            samples = self._runs.pop(arm).stop()
            arms[arm] = self._arms[arm].figures(
                seconds, self._before[arm], self._read(arm), samples
            )
        return {
            "at_s": round((self.began_s + ended_s) / 2, 3),
            "seconds": round(seconds, 3),
            "phase": phase,
            "load": round(self._load_seconds / self._seconds, 4) if self._seconds else 0.0,
            "burst": self.burst,
            "fault": self.fault,
            "life": dict(life),
            "arms": arms,
        }

    def abandon(self) -> None:
        """Ends what it holds, without a row."""
        for run in self._runs.values():
            run.stop()
        self._runs.clear()

    def _read(self, arm: Arm) -> CounterSnapshot | None:
        return self._instruments.probe.read(self._instruments.endpoint(arm))
