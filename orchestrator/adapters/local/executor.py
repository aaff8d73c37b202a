"""Runs trials in this process, one after the other: for tests, and without Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.plan.trial import Trial
from orchestrator.ports import OnProgress, PairReport, Progress, ReportPair
from orchestrator.records import Outcome

RunTrial = Callable[[Trial, ReportPair], Outcome]


@dataclass(frozen=True)
class LocalExecutor:
    """Implements ports.Executor. `run_trial` is what a Tune trial would run."""

    run_trial: RunTrial

    def run(self, trials: Sequence[Trial], on_progress: OnProgress) -> dict[str, Outcome]:
        outcomes = {}
        for trial in trials:
            on_progress(Progress("trial_started", trial=trial))

            def report(pair: PairReport, trial: Trial = trial) -> None:
                on_progress(Progress("pair", trial=trial, report=pair))

            outcome = self.run_trial(trial, report)
            outcomes[trial.id] = outcome
            on_progress(Progress("trial_ended", trial=trial, outcome=outcome))
        return outcomes
