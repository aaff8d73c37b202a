"""The suites of a sweep, after its trials: what has not ended is run, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orchestrator.ports import OnProgress
from orchestrator.run.suites.job import SuiteJob
from orchestrator.store import SweepFolder


class SuiteExecutor(Protocol):
    """Runs suites; each leaves its record and its outcome in the sweep's folder."""

    def run_suites(self, jobs: Sequence[SuiteJob], on_progress: OnProgress) -> None: ...


def begin_suites(folder: SweepFolder, jobs: Sequence[SuiteJob]) -> None:
    """Note what is asked for. What an earlier run of the same pairs did stays in the list."""
    pairs, asked = {job.pair.key for job in jobs}, {job.id for job in jobs}
    kept = [job for job in folder.suites() if job.id not in asked and job.pair.key in pairs]
    if jobs:
        folder.save_suites([*kept, *jobs])


def unfinished_suites(
    folder: SweepFolder, jobs: Sequence[SuiteJob], *, retry_failed: bool = False
) -> tuple[SuiteJob, ...]:
    """Those without an outcome, or whose record is not complete."""
    return tuple(job for job in jobs if not folder.suite(job.id).done(retry_failed=retry_failed))


def run_suites(
    folder: SweepFolder,
    jobs: Sequence[SuiteJob],
    executor: SuiteExecutor,
    on_progress: OnProgress,
    *,
    retry_failed: bool = False,
) -> None:
    todo = unfinished_suites(folder, jobs, retry_failed=retry_failed)
    if todo:
        executor.run_suites(todo, on_progress)
