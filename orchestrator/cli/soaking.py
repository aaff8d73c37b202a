"""The adapters of a soak over HTTP: continuous load, and what goes wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from orchestrator.adapters.faults import HostFaults
from orchestrator.adapters.http.pool import Tls
from orchestrator.adapters.http.request import UsageWanted
from orchestrator.adapters.http.stream import HttpStream
from orchestrator.cli.preparation import Prepared
from orchestrator.errors import ClientFailed
from orchestrator.plan.block import Timeouts
from orchestrator.plan.fresh import FreshRequests
from orchestrator.ports import Endpoint, LoadStream, Telemetry
from orchestrator.records import Arm, RequestRecord
from orchestrator.run.soak.tools import SoakTools

Redact = Callable[[RequestRecord], RequestRecord]


def soak_tools(
    prepared: Prepared,
    folder: Path,
    telemetry: Telemetry,
    *,
    in_turn: bool = False,
    can_restart: bool = True,
    usage: UsageWanted = "continuous",
    tls: Tls = Tls(),  # noqa: B008 -- frozen
    cpus: Collection[int] | None = None,
    redact: Redact | None = None,
) -> SoakTools | None:
    """None where no soak is asked for."""
    requests = prepared.soak_requests()
    if requests is None:
        return None

    def open_stream(
        endpoints: Mapping[Arm, Endpoint],
        requests: FreshRequests,
        *,
        first_index: int,
        timeouts: Timeouts,
    ) -> LoadStream:
        far = [arm for arm, endpoint in endpoints.items() if endpoint.node is not None]
        if far:
            raise ClientFailed(
                f"the {' and '.join(far)} engine runs on another node, and a soak sends its load "
                "from this one; run the soak on that node, or attach to the servers"
            )
        stream = HttpStream(
            endpoints,
            requests,
            first_index=first_index,
            timeouts=timeouts,
            usage=usage,
            tls=tls,
            cpus=cpus,
        )
        return stream if redact is None else _RedactedStream(stream, redact)

    return SoakTools(
        open_stream,
        requests,
        telemetry,
        lambda: HostFaults(folder),
        prepared.timeouts(),
        in_turn,
        can_restart,
    )


class _RedactedStream:
    """Implements ports.LoadStream over another one; its records hold no key."""

    def __init__(self, stream: HttpStream, redact: Redact) -> None:
        self._stream, self._redact = stream, redact
        self.offer, self.redirect = stream.offer, stream.redirect
        self.now_s, self.next_index, self.close = stream.now_s, stream.next_index, stream.close
        self.in_flight = stream.in_flight

    def run_until(self, at_s: float) -> Mapping[Arm, Sequence[RequestRecord]]:
        seen = self._stream.run_until(at_s)
        return {arm: [self._redact(one) for one in records] for arm, records in seen.items()}
