"""A soak's checkpoint, and the sample of its requests, in bounded space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.records import Arm, Outcome, RequestRecord
from orchestrator.run.suites.record import SuiteRecord
from orchestrator.store.block_file import write_requests
from orchestrator.store.suite_folder import SuiteFolder

FIRST_SHARE = 0.25
"""Of the space, for the beginning; the rest is for what came last."""


@dataclass(frozen=True)
class SoakFiles:
    """Implements run.soak.tools.SoakKeeper in a suite's folder."""

    folder: SuiteFolder
    job_id: str
    raw_bytes: float

    def earlier(self) -> SuiteRecord | None:
        """Raises: StoreError when it cannot be read back."""
        record = self.folder.record()
        return None if record is None or record.complete else record

    def checkpoint(self, record: SuiteRecord) -> None:
        """The record so far, judged like a whole one by whoever makes a report meanwhile."""
        self.folder.save_record(record)
        self.folder.save_outcome(Outcome(self.job_id, "stopped", wall_s=record.seconds))

    def raw(self, window: int, arm: Arm, records: Sequence[RequestRecord]) -> None:
        """`raw/00012-A.parquet`; files in the middle go when all together become too large."""
        if not records:
            return
        letter = "A" if arm == "baseline" else "B"
        write_requests(self._raw / f"{window:05d}-{letter}.parquet", records, durable=False)
        self._rotate()

    @property
    def _raw(self) -> Path:
        return self.folder.path / "raw"

    def _rotate(self) -> None:
        files = sorted(self._raw.glob("*.parquet"))
        sizes = [file.stat().st_size for file in files]
        total, first = sum(sizes), 0
        kept_first = 0.0
        while first < len(files) and kept_first + sizes[first] <= FIRST_SHARE * self.raw_bytes:
            kept_first += sizes[first]
            first += 1
        for file, size in zip(files[first:-1], sizes[first:-1], strict=True):
            if total <= self.raw_bytes:
                return
            file.unlink()
            total -= size
