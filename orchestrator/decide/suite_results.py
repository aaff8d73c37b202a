"""What the suites of a sweep found: judged anew from their records."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.analyse.suites.catalogue import JUDGES
from orchestrator.records import Outcome
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.record import SuiteResult
from orchestrator.store import SuiteFolder, SweepFolder


@dataclass(frozen=True)
class JudgedSuite:
    """One suite on one pair: what was asked for, how it ended, what it shows."""

    job: SuiteJob
    outcome: Outcome | None
    """None: it has not ended."""
    result: SuiteResult | None
    """None: there is no record."""
    started_unix_s: float | None = None
    seconds: float | None = None
    engines: tuple[tuple[str, str | None], ...] = ()
    """Name and version of the engines it ran on."""

    @property
    def failed(self) -> bool:
        return self.outcome is not None and self.outcome.status == "failed"

    @property
    def verdict(self) -> str:
        """In a few words; a suite that did not run to its end has none of its own."""
        if self.outcome is None:
            return "not run"
        if self.failed or self.result is None:
            return "failed"
        return self.result.verdict + ("" if self.result.complete else " (not complete)")


def read_suites(folder: SweepFolder) -> tuple[JudgedSuite, ...]:
    """Every suite that was asked for, in order. Raises: StoreError."""
    return tuple(judged(job, folder.suite(job.id)) for job in folder.suites())


def judged(job: SuiteJob, folder: SuiteFolder) -> JudgedSuite:
    outcome = folder.outcome()
    record = None if outcome is None or outcome.status == "failed" else folder.record()
    judge = JUDGES.get(job.suite)
    if record is None or judge is None:
        return JudgedSuite(job, outcome, None)
    return JudgedSuite(
        job, outcome, judge(record), record.started_unix_s, record.seconds, record.engines
    )
