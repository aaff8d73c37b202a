"""Runs suites in this process, one after the other: they share the engines that trials measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.ports import OnProgress, Progress
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.runner import SuiteRunner
from orchestrator.store import SweepFolder


@dataclass(frozen=True)
class LocalSuites:
    """Implements sweep_suites.SuiteExecutor. `after_event` lets a pool tell what it has started."""

    folder: SweepFolder
    runner: SuiteRunner
    after_event: Callable[[], None] = lambda: None

    def run_suites(self, jobs: Sequence[SuiteJob], on_progress: OnProgress) -> None:
        for job in jobs:
            on_progress(Progress("suite_started", suite=job.id, text=job.label()))

            def say(text: str, job: SuiteJob = job) -> None:
                self.after_event()
                on_progress(Progress("suite_said", suite=job.id, text=f"{job.label()}: {text}"))

            outcome = self.runner.run(job, self.folder.suite(job.id), say)
            self.after_event()
            on_progress(Progress("suite_ended", suite=job.id, text=job.label(), outcome=outcome))
