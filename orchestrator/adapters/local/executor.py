"""Runs trials in this process, one after the other: for tests, and without Ray."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.ports import Job, OnProgress, PairReport, Progress, ReportPair, Steering
from orchestrator.records import Outcome

RunJob = Callable[[Job, ReportPair], Outcome]


@dataclass(frozen=True)
class LocalExecutor:
    """Implements ports.Executor. `run_job` is what a Tune trial would run."""

    run_job: RunJob
    monotonic: Callable[[], float] = time.monotonic

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]:
        outcomes = {}
        for job in self._in_turn(jobs, steering):
            trial = job.trial
            on_progress(Progress("trial_started", trial=trial))

            def report(pair: PairReport, job: Job = job) -> str | None:
                on_progress(Progress("pair", trial=job.trial, report=pair))
                return None if steering is None else steering.after_pair(pair, self.monotonic())

            outcome = self.run_job(job, report)
            outcomes[trial.id] = outcome
            if steering is not None:
                steering.ended(outcome, self.monotonic())
            on_progress(Progress("trial_ended", trial=trial, outcome=outcome))
        return outcomes

    def _in_turn(self, jobs: Sequence[Job], steering: Steering | None) -> Iterator[Job]:
        if steering is None:
            yield from jobs
            return
        by_id = {job.trial.id: job for job in jobs}
        while (trial := steering.next(self.monotonic())) is not None:
            yield by_id[trial.id]
