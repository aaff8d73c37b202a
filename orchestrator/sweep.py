"""The story of a sweep, on one page. Knows ports only.

what has not ended yet is run  ->  the best cell is confirmed on prompts not used before
->  the suites that were asked for  ->  everything is derived from the records  ->  tracked
->  reported
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.decide.ladders import further_trials
from orchestrator.decide.suite_results import judged
from orchestrator.decide.sweep_result import SweepResult, read_sweep, whole_sweep
from orchestrator.decide.trial_result import read_trial, slo_bounds
from orchestrator.errors import TrackingUnavailable
from orchestrator.plan.trial import Trial
from orchestrator.ports import Executor, Job, OnProgress, Progress, Tracker
from orchestrator.records import Outcome
from orchestrator.report.tracked import tracked_run, tracked_suite, tracked_sweep, tracked_totals
from orchestrator.report.written import write_report
from orchestrator.run.suites.job import SuiteJob
from orchestrator.store import SweepFolder
from orchestrator.sweep_suites import SuiteExecutor, begin_suites, run_suites

OpenTracker = Callable[[], Tracker]


@dataclass(frozen=True)
class Sweep:
    """One sweep: what to run, where it is kept, and the ports it runs through."""

    jobs: Sequence[Job]
    """The plan's trials with what they send, in order."""
    further: Callable[[Trial, Sequence[Trial]], Job | str]
    """A trial on prompts that neither the plan nor the trials added before it use; or why not."""
    folder: SweepFolder
    manifest: Mapping[str, object]
    executor: Executor
    open_tracker: OpenTracker
    on_progress: OnProgress
    suites: Sequence[SuiteJob] = ()
    suite_executor: SuiteExecutor | None = None
    further_rungs: int = 0
    """How many loads may be added to the ladders."""
    retry_failed: bool = False


@dataclass(frozen=True)
class Finished:
    """How a sweep ended."""

    result: SweepResult
    report: Path
    tracking: str | None
    """Where to look at it; None when tracking was not available."""
    notes: tuple[str, ...] = field(default=())


def run_sweep(sweep: Sweep) -> Finished:
    """Run what has not ended, and report on everything. Running it again only reports.

    Raises: StoreError; whatever the executor raises when it cannot run at all.
    """
    with sweep.folder.locked():
        began = time.time()
        _begin(sweep)
        tracking = _Tracking(sweep)
        on_progress = _tracked(sweep.on_progress, tracking)
        _run(sweep, sweep.jobs, on_progress)
        _go_on_refining(sweep, on_progress)
        notes = [*_refine(sweep, on_progress), *_confirm_best(sweep, on_progress)]
        _run_suites(sweep, on_progress)
        result = whole_sweep(sweep.folder)
        report = write_report(result, sweep.folder.path)
        tracking.finish(result, report, began)
        return Finished(result, report, tracking.location, (*notes, *tracking.notes))


def _begin(sweep: Sweep) -> None:
    """Record what is asked. What an earlier run of the same sweep recorded about itself stays."""
    known: dict[str, object] = {}
    if (sweep.folder.path / "sweep.json").exists():
        earlier = sweep.folder.manifest()
        known = {name: earlier[name] for name in ("sweep_id", "created_unix_s") if name in earlier}
    sweep.folder.begin({**sweep.manifest, **known})
    begin_suites(sweep.folder, sweep.suites)
    if not sweep.jobs and (sweep.folder.path / "trials.json").exists():
        return  # only suites are asked for: the trials of an earlier run stay
    sweep.folder.save_trials([job.trial for job in sweep.jobs])
    pairs = {job.trial.pair.key for job in sweep.jobs}
    sweep.folder.save_added([t for t in sweep.folder.added() if t.pair.key in pairs])


def _run(sweep: Sweep, jobs: Sequence[Job], on_progress: OnProgress) -> None:
    unfinished = sweep.folder.unfinished(
        [job.trial for job in jobs], retry_failed=sweep.retry_failed
    )
    todo = {trial.id for trial in unfinished}
    sweep.executor.run([job for job in jobs if job.trial.id in todo], on_progress)


def _run_suites(sweep: Sweep, on_progress: OnProgress) -> None:
    if sweep.suite_executor is not None:
        run_suites(
            sweep.folder,
            sweep.suites,
            sweep.suite_executor,
            on_progress,
            retry_failed=sweep.retry_failed,
        )


def _refine(sweep: Sweep, on_progress: OnProgress) -> tuple[str, ...]:
    """Close in on knees and break-even loads, rung by rung, as far as the file allows."""
    notes: list[str] = []
    while True:
        added = [trial for trial in sweep.folder.added() if trial.kind == "comparison"]
        left = sweep.further_rungs - len(added)
        if left <= 0:
            return tuple(notes)
        jobs: list[Job] = []
        for trial in further_trials(read_sweep(sweep.folder).trials, left):
            job = sweep.further(trial, [*added, *(job.trial for job in jobs)])
            if isinstance(job, str):
                notes.append(f"{trial.label()} was not measured as well: {job}")
            else:
                jobs.append(job)
        if not jobs:
            return tuple(notes)
        sweep.folder.save_added([*sweep.folder.added(), *(job.trial for job in jobs)])
        on_progress(Progress("refining", text=f"{len(jobs)} further loads"))
        _run(sweep, jobs, on_progress)


def _go_on_refining(sweep: Sweep, on_progress: OnProgress) -> None:
    """Further rungs that an interrupted run had begun."""
    added = [trial for trial in sweep.folder.added() if trial.kind == "comparison"]
    jobs = [sweep.further(trial, added[:index]) for index, trial in enumerate(added)]
    _run(sweep, [job for job in jobs if not isinstance(job, str)], on_progress)


def _confirm_best(sweep: Sweep, on_progress: OnProgress) -> tuple[str, ...]:
    """Choosing the best of many flatters it; so it is measured once more, on fresh prompts."""
    best = read_sweep(sweep.folder).best
    if best is None:
        return ()
    kept = [trial for trial in sweep.folder.added() if trial.kind != "confirmation"]
    job = sweep.further(best.trial.confirmation(), kept)
    if isinstance(job, str):
        return (f"the best cell was not confirmed: {job}",)
    sweep.folder.save_added([*kept, job.trial])
    if sweep.folder.unfinished([job.trial], retry_failed=sweep.retry_failed):
        on_progress(Progress("confirming", text="the best cell again, on prompts not used before"))
        sweep.executor.run([job], on_progress)
    return ()


def _tracked(on_progress: OnProgress, tracking: _Tracking) -> OnProgress:
    def forward(event: Progress) -> None:
        if event.kind == "trial_ended" and event.trial is not None:
            tracking.log(event.trial, event.outcome)
        if event.kind == "suite_ended" and event.suite is not None:
            tracking.log_suite(event.suite)
        on_progress(event)

    return forward


class _Tracking:
    """Logs trials as they end; when tracking fails, the sweep goes on and says so once."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._slo = slo_bounds(_experiment(sweep).get("slo") or {})
        self._tracker: Tracker | None = None
        self._logged: set[str] = set()
        self.notes: list[str] = []
        self.location: str | None = None
        self._attempt(self._open)

    def _open(self) -> None:
        tracker = self._sweep.open_tracker()
        tracker.open_sweep(tracked_sweep(self._sweep.folder.manifest()))
        self._tracker, self.location = tracker, tracker.location()

    def log(self, trial: Trial, outcome: Outcome | None) -> None:
        self._attempt(lambda: self._log(trial))

    def _log(self, trial: Trial) -> None:
        if self._tracker is None:
            return
        folder = self._sweep.folder.trial(trial.id)
        result = read_trial(trial, folder, self._slo)
        manifest = self._sweep.folder.manifest()
        self._tracker.log_run(tracked_run(result, result.headline, folder, manifest))
        self._logged.add(trial.id)

    def log_suite(self, suite_id: str) -> None:
        def log() -> None:
            job = next(job for job in self._sweep.suites if job.id == suite_id)
            _log_suite(self._sweep.folder, job, self._tracker)

        self._attempt(log)

    def finish(self, result: SweepResult, report: Path, began: float) -> None:
        """Log the corrected verdicts and the report on the parent run."""

        def close() -> None:
            if self._tracker is None:
                return
            for trial in result.every:
                changed = result.decision(trial).verdict != trial.headline.verdict
                if changed and trial.trial.id in self._logged:
                    folder = self._sweep.folder.trial(trial.trial.id)
                    decision = result.decision(trial)
                    self._tracker.log_run(tracked_run(trial, decision, folder, result.manifest))
            totals = tracked_totals(result)
            self._tracker.close_sweep(
                metrics={**totals.metrics, "sweep_wall_s": time.time() - began},
                tags=totals.tags,
                artifacts={report.name: report, "sweep.json": report.parent / "sweep.json"},
                status="FINISHED",
            )

        self._attempt(close)

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except TrackingUnavailable as error:
            self._tracker, self.location = None, None
            name = self._sweep.folder.path.name
            self.notes.append(str(error).replace("track SWEEP", f"track {name}"))
            self._sweep.on_progress(Progress("tracking_unavailable", text=self.notes[-1]))


def track_again(folder: SweepFolder, tracker: Tracker) -> SweepResult:
    """Rebuild a sweep's runs from its records alone. Raises: TrackingUnavailable, StoreError."""
    result = whole_sweep(folder)
    tracker.open_sweep(tracked_sweep(result.manifest))
    for trial in result.every:
        if trial.outcome is not None:
            own = folder.trial(trial.trial.id)
            tracker.log_run(tracked_run(trial, result.decision(trial), own, result.manifest))
    for suite in result.suite_runs:
        _log_suite(folder, suite.job, tracker)
    report = write_report(result, folder.path)
    totals = tracked_totals(result)
    tracker.close_sweep(
        metrics=totals.metrics,
        tags=totals.tags,
        artifacts={report.name: report, "sweep.json": folder.path / "sweep.json"},
        status="FINISHED",
    )
    return result


def _log_suite(folder: SweepFolder, job: SuiteJob, tracker: Tracker | None) -> None:
    own = folder.suite(job.id)
    suite = judged(job, own)
    if tracker is None or suite.outcome is None:
        return
    if suite.result is not None:
        own.save_result(suite.result)
    tracker.log_run(tracked_suite(suite, own, folder.manifest()))


def _experiment(sweep: Sweep) -> Mapping[str, dict[str, float]]:
    experiment = sweep.manifest["experiment"]
    assert isinstance(experiment, Mapping)
    return experiment
