"""Tracks a sweep beside it: one writer, in a thread of its own, that no measurement waits for."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping

from orchestrator.decide.derived import trial_result
from orchestrator.decide.suite_results import judged
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import slo_bounds
from orchestrator.errors import StoreError, TrackingUnavailable
from orchestrator.plan.trial import Trial
from orchestrator.ports import Tracker
from orchestrator.report.tracked import (
    Manifest,
    tracked_run,
    tracked_suite,
    tracked_sweep,
    tracked_totals,
)
from orchestrator.report.tracked_note import sweep_artifacts
from orchestrator.report.written import Written
from orchestrator.run.suites.job import SuiteJob
from orchestrator.store import SweepFolder

PATIENCE_S = 30.0
"""At the end of a sweep: without a single run logged for so long, tracking is given up."""
PARTING_S = 2.0
"""For a sweep that was interrupted: it has to end soon."""

Step = Callable[[Tracker], None]


class Tracking:
    """Logs trials as they end. What cannot be logged, or only slowly, never stops the sweep.

    The records hold everything already: when tracking fails, it is said once, and `track SWEEP`
    makes up for it.
    """

    def __init__(
        self,
        folder: SweepFolder,
        open_tracker: Callable[[], Tracker],
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._folder = folder
        self._manifest: Manifest = folder.manifest()
        self._slo = slo_bounds(self._manifest["experiment"].get("slo") or {})
        self._patience_s = patience_s
        self._steps: queue.SimpleQueue[Step | None] = queue.SimpleQueue()
        self._waiting = 0
        self._done = 0
        self._logged: set[str] = set()
        self.failed: str | None = None
        """Why nothing, or not everything, was logged."""
        self._said = False
        self._defect: BaseException | None = None
        self._tracker: Tracker | None = None
        self.location: str | None = None
        self._thread = threading.Thread(
            target=self._write, args=(open_tracker,), name="tracking", daemon=True
        )
        self._thread.start()

    def log(self, trial: Trial) -> None:
        """Log a trial that has ended, soon."""

        def step(tracker: Tracker) -> None:
            folder = self._folder.trial(trial.id)
            result = trial_result(trial, folder, self._slo)
            tracker.log_run(tracked_run(result, result.headline, folder, self._manifest))
            self._logged.add(trial.id)

        self._put(step)

    def log_suite(self, job: SuiteJob) -> None:
        """Log a suite that has ended, soon."""
        self._put(lambda tracker: log_suite(tracker, self._folder, job))

    def news(self) -> str | None:
        """What went wrong, the first time it is asked for after it did."""
        if self.failed is None or self._said:
            return None
        self._said = True
        return self.failed

    def finish(self, result: SweepResult, report: Written, began: float) -> None:
        """Log the corrected verdicts and the report on the parent run; returns when it is done, or
        when nothing has moved for too long."""

        def close(tracker: Tracker) -> None:
            for trial in result.every:
                decision = result.decision(trial)
                if decision.verdict != trial.headline.verdict and trial.trial.id in self._logged:
                    own = self._folder.trial(trial.trial.id)
                    tracker.log_run(tracked_run(trial, decision, own, result.manifest))
                    self._done += 1
            close_sweep(tracker, result, report, {"sweep_wall_s": time.time() - began})

        self._put(close)
        self._end(self._patience_s)

    def interrupted(self) -> None:
        """The sweep ends here: what is logged stays, and the parent run says so."""

        def close(tracker: Tracker) -> None:
            tracker.close_sweep(metrics={}, tags={}, artifacts={}, status="KILLED")

        with contextlib.suppress(queue.Empty):
            while True:
                self._steps.get_nowait()
        self._steps.put(close)
        self._end(PARTING_S)

    def _put(self, step: Step) -> None:
        self._waiting += 1
        self._steps.put(step)

    def _end(self, patience_s: float) -> None:
        self._steps.put(None)
        done = -1
        while self._thread.is_alive() and done != self._done:
            done = self._done
            self._thread.join(patience_s)
        stuck = self._thread.is_alive()
        if self._tracker is not None:
            self._tracker.close()
        if self._defect is not None:
            raise self._defect
        if stuck and self.failed is None:
            self.location = None
            self._fail(
                f"the tracking server did not answer within {patience_s:g} s: "
                f"{self._done} of {self._waiting} writes reached it; the records are safe, and "
                f"`python -m orchestrator track {self._folder.path.name}` logs them"
            )

    def _write(self, open_tracker: Callable[[], Tracker]) -> None:
        try:
            self._write_all(open_tracker)
        except BaseException as error:  # noqa: BLE001 - raised again where the sweep ends
            self._defect = error

    def _write_all(self, open_tracker: Callable[[], Tracker]) -> None:
        tracker: Tracker | None = None
        try:
            self._tracker = tracker = open_tracker()
            tracker.open_sweep(tracked_sweep(self._manifest))
            self.location = tracker.location()
        except TrackingUnavailable as error:
            tracker = None
            self._fail(str(error))
        while (step := self._steps.get()) is not None:
            if tracker is None:
                continue
            try:
                step(tracker)
                self._done += 1
            except (TrackingUnavailable, StoreError) as error:
                tracker, self.location = None, None
                self._fail(str(error))

    def _fail(self, text: str) -> None:
        self.failed = text.replace("track SWEEP", f"track {self._folder.path.name}")


def close_sweep(
    tracker: Tracker,
    result: SweepResult,
    report: Written,
    metrics: Mapping[str, float] | None = None,
) -> None:
    """The totals and the report on the parent run. Raises: TrackingUnavailable."""
    artifacts = sweep_artifacts(report.page.parent)
    totals = tracked_totals(result, artifacts)
    tracker.close_sweep(
        metrics={**totals.metrics, **(metrics or {})},
        tags=totals.tags,
        artifacts=artifacts,
        status="FINISHED",
    )


def log_suite(tracker: Tracker, folder: SweepFolder, job: SuiteJob) -> None:
    """A suite's judgement, kept beside its records and logged. Raises: TrackingUnavailable."""
    own = folder.suite(job.id)
    suite = judged(job, own)
    if suite.outcome is None:
        return
    if suite.result is not None:
        own.save_result(suite.result)
    tracker.log_run(tracked_suite(suite, own, folder.manifest()))
