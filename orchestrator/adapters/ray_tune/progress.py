"""From Tune's callbacks to our progress events, and to outcomes of trials whose process died."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray
from ray import tune

from orchestrator.errors import StoreError
from orchestrator.plan.trial import Trial
from orchestrator.ports import OnProgress, PairReport, Progress, Steering
from orchestrator.records import FailureClass, Outcome
from orchestrator.store import SweepFolder

_POLL_S = 0.5


def drain_engine_events(pool: Any, on_progress: OnProgress) -> None:
    """Pass on what a pool's actor has started since the last call."""
    for kind, label, seconds in ray.get(pool.drain_events.remote()):
        took = "" if seconds is None else f" after {seconds:.0f} s"
        on_progress(Progress(f"engine_{kind}", text=f"{label}{took}"))


class ProgressCallback(tune.Callback):  # type: ignore[misc]
    """Runs in the driver, inside Tune's loop."""

    def __init__(
        self,
        trials: Mapping[str, Trial],
        pool: Any,
        folder: SweepFolder,
        on_progress: OnProgress,
        steering: Steering | None = None,
    ) -> None:
        self._trials = trials
        self._pool = pool
        self._folder = folder
        self._on_progress = on_progress
        self._steering = steering
        self._valid_pairs: dict[str, int] = {}
        self._began: dict[str, float] = {}
        self.reasons: Mapping[str, str] = {}
        """Why trials were stopped by the scheduler, by trial id."""
        self._polled_at = 0.0
        self.outcomes: dict[str, Outcome] = {}
        self.store_failed: str | None = None
        """Why records could not be written: then no trial can go on."""

    def __getstate__(self) -> dict[str, Any]:
        """Tune pickles what it was given into a snapshot that we never read; what happens in this
        process (threads, a terminal) cannot go there."""
        return {}

    def drain_engine_events(self) -> None:
        """Pass on what the pool has started since the last call."""
        drain_engine_events(self._pool, self._on_progress)

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        if time.monotonic() - self._polled_at >= _POLL_S:
            self._polled_at = time.monotonic()
            self.drain_engine_events()

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._began[self._ours(trial).id] = time.monotonic()
        self._tell(Progress("trial_started", trial=self._ours(trial)))

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        ours = self._ours(trial)
        if "report" in result:
            report = PairReport(**result["report"])
            self._valid_pairs[ours.id] = int(report.metrics.get("valid_pairs", 0))
            self._tell(Progress("pair", trial=ours, report=report))
        if "store_failed" in result:
            self.store_failed = result["store_failed"]
        if "outcome" in result:
            facts = dict(result["outcome"])
            if facts["failure"] is not None:
                facts["failure"] = FailureClass(facts["failure"])
            self.outcomes[ours.id] = Outcome(**facts)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._ended(self._ours(trial), None)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._ended(self._ours(trial), self._error_text(trial))

    def _ended(self, trial: Trial, error: str | None) -> None:
        outcome = self.outcomes.get(trial.id)
        if outcome is None and self.store_failed is not None:
            return  # cut short: it goes on when the sweep is run again
        if outcome is None and trial.id in self.reasons:
            try:
                outcome = self._stopped(trial)
            except StoreError as failed:
                self.store_failed = str(failed)
                return
        if outcome is None:
            # The trial's own process died, so it could not record its end: we do.
            lines = (error or "").strip().splitlines()
            outcome = Outcome(
                trial.id,
                "failed",
                FailureClass.INTERNAL,
                "the trial's process ended without an outcome: "
                + (lines[-1] if lines else "no error was left"),
                log_tail="\n".join(lines[-40:]) or None,
                pairs_measured=len(self._folder.trial(trial.id).pairs()),
            )
            ray.get(self._pool.reclaim.remote(trial.id))
            try:
                self._folder.trial(trial.id).save_outcome(outcome)
            except StoreError as failed:
                self.store_failed = str(failed)
                return
            self.outcomes[trial.id] = outcome
        if self._steering is not None:
            self._steering.ended(outcome, time.monotonic())
        self._tell(Progress("trial_ended", trial=trial, outcome=outcome))

    def _tell(self, event: Progress) -> None:
        """Whoever is told may write records too. Tune would make a failure of its own of what is
        raised here."""
        try:
            self._on_progress(event)
        except StoreError as failed:
            self.store_failed = self.store_failed or str(failed)

    def _stopped(self, trial: Trial) -> Outcome:
        """Tune ends a stopped trial's function between two pairs, and may not wait for it: so its
        outcome is written here, and its engines are taken back."""
        blocks = self._folder.trial(trial.id).pairs()
        outcome = Outcome(
            trial.id,
            "stopped",
            cause=self.reasons[trial.id],
            pairs_measured=len(blocks),
            pairs_valid=self._valid_pairs.get(trial.id, 0),
            wall_s=time.monotonic() - self._began.get(trial.id, time.monotonic()),
            measured_s=sum(block.duration_s for pair in blocks for block in pair),
        )
        self._folder.trial(trial.id).save_outcome(outcome)
        ray.get(self._pool.reclaim.remote(trial.id))
        self.outcomes[trial.id] = outcome
        return outcome

    def _ours(self, trial: Any) -> Trial:
        return self._trials[trial.config["point"]["id"]]

    @staticmethod
    def _error_text(trial: Any) -> str | None:
        path = getattr(trial, "error_file", None)
        if path is None:
            return None
        file = Path(path)
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else None


class WhenRecordsCannotBeWritten(tune.Stopper):  # type: ignore[misc]
    """Ends the whole run: what is measured now would be lost."""

    def __init__(self, progress: ProgressCallback) -> None:
        self._progress = progress

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self._progress.store_failed is not None
