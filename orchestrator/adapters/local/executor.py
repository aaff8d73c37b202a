"""Runs trials in this process, one after the other: for tests, and without Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.plan.trial import Trial
from orchestrator.ports import Job, OnProgress, PairReport, Progress, ReportPair
from orchestrator.records import Outcome

RunJob = Callable[[Job, ReportPair], Outcome]


@dataclass(frozen=True)
class LocalExecutor:
    """Implements ports.Executor. `run_job` is what a Tune trial would run."""

    run_job: RunJob

    def run(self, jobs: Sequence[Job], on_progress: OnProgress) -> dict[str, Outcome]:
        outcomes = {}
        for job in jobs:
            trial = job.trial
            on_progress(Progress("trial_started", trial=trial))

            def report(pair: PairReport, trial: Trial = trial) -> None:
                on_progress(Progress("pair", trial=trial, report=pair))

            outcome = self.run_job(job, report)
            outcomes[trial.id] = outcome
            on_progress(Progress("trial_ended", trial=trial, outcome=outcome))
        return outcomes
