"""Host figures for the arm that runs on this host; none, rather than somebody else's, otherwise."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.adapters.attached.placement import on_this_host
from orchestrator.adapters.local.telemetry import HostTelemetry
from orchestrator.ports import Endpoint, Telemetry, TelemetryRun
from orchestrator.records import Sample


class AttachedTelemetry:
    """Implements ports.Telemetry. Where a server runs is found out once per address."""

    def __init__(
        self,
        host: Telemetry | None = None,
        *,
        here: Callable[[str], bool] = on_this_host,
    ) -> None:
        self._host = host or HostTelemetry()
        self._here = here
        self._known: dict[str, bool] = {}

    def start(self, endpoint: Endpoint) -> TelemetryRun:
        url = endpoint.base_url
        if url not in self._known:
            self._known[url] = self._here(url)
        return self._host.start(endpoint) if self._known[url] else _Nothing()


class _Nothing:
    def stop(self) -> tuple[Sample, ...]:
        return ()
