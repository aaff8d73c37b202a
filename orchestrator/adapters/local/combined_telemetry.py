"""Several telemetries as one: host and devices."""

from __future__ import annotations

from orchestrator.ports import Endpoint, Telemetry, TelemetryRun
from orchestrator.records import Sample


class CombinedTelemetry:
    """Implements ports.Telemetry. Samples of all parts in order of time, each with its own keys."""

    def __init__(self, *parts: Telemetry) -> None:
        self._parts = parts

    def start(self, endpoint: Endpoint) -> TelemetryRun:
        runs: list[TelemetryRun] = []
        try:
            for part in self._parts:
                runs.append(part.start(endpoint))
        except BaseException:
            for run in runs:
                run.stop()
            raise
        return _CombinedRun(runs)


class _CombinedRun:
    def __init__(self, runs: list[TelemetryRun]) -> None:
        self._runs = runs

    def stop(self) -> tuple[Sample, ...]:
        """Stops every part, also when one of them fails; then the first failure is raised."""
        samples: list[Sample] = []
        failure: BaseException | None = None
        for run in self._runs:
            try:
                samples.extend(run.stop())
            except Exception as error:  # noqa: BLE001 - raised below, once all threads have ended
                failure = failure or error
        if failure is not None:
            raise failure
        return tuple(sorted(samples, key=lambda sample: sample.at_s))
