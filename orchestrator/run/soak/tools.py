"""What a soak needs beside what every suite is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.plan.block import Timeouts
from orchestrator.plan.fresh import FreshRequests
from orchestrator.ports import FaultInjector, OpenStream, Telemetry
from orchestrator.records import Arm, RequestRecord
from orchestrator.run.suites.record import SuiteRecord


class SoakKeeper(Protocol):
    """Where a soak keeps what it has, so that it can be killed at any moment."""

    def earlier(self) -> SuiteRecord | None:
        """What an interrupted run of the same soak left."""

    def checkpoint(self, record: SuiteRecord) -> None:
        """Raises: StoreError when it cannot be written."""

    def raw(self, window: int, arm: Arm, records: Sequence[RequestRecord]) -> None:
        """A sample of one window's requests. Raises: StoreError."""


@dataclass(frozen=True)
class SoakTools:
    open_stream: OpenStream
    requests: FreshRequests
    telemetry: Telemetry
    faults: Callable[[], FaultInjector]
    timeouts: Timeouts
    in_turn: bool = False
    """The arms share one device by turns: they cannot be loaded side by side."""
    can_restart: bool = True
    """False: somebody else started these servers."""
