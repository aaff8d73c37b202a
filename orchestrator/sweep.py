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
from typing import Protocol

from orchestrator.decide.ladders import further_trials
from orchestrator.decide.schedule import schedule_of
from orchestrator.decide.sweep_result import Known, SweepResult, read_sweep, whole_sweep
from orchestrator.errors import EnvironmentChanged
from orchestrator.plan.trial import Trial
from orchestrator.ports import Executor, Job, OnProgress, Progress, Steering, Tracker
from orchestrator.report.tracked import tracked_run, tracked_sweep
from orchestrator.report.up_to_date import Reported, reported, save_reported
from orchestrator.report.written import Written, write_report, written_to
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.use_log import GetUse, UseLog
from orchestrator.store import SweepFolder
from orchestrator.store.comparable import changes
from orchestrator.sweep_suites import SuiteExecutor, begin_suites, run_suites, unfinished_suites
from orchestrator.tracking import Tracking, close_sweep, log_suite

OpenTracker = Callable[[], Tracker]
Reuse = Callable[[Sequence[Trial]], Mapping[str, str]]
"""The name of the sweep that measured it, by the id of every trial that could be taken over."""
Steer = Callable[[Sequence[Trial]], "Search"]
"""A search over the plan, given the trials that may still run."""


class Search(Steering, Protocol):
    """A search that says how it went."""

    def summary(self) -> Mapping[str, object]: ...


Draw = Callable[[SweepResult, Path], object]
"""Writes pictures of a result into its folder."""


def _nothing_drawn(result: SweepResult, folder: Path) -> None:
    """For who needs no pictures."""


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
    retry_stopped: bool = False
    reuse: Reuse | None = None
    """Takes over what other sweeps have measured; None: everything is measured here."""
    steer: Steer | None = None
    """Makes the search over the comparisons; None: every one of them, in the plan's order."""
    device_use: GetUse | None = None
    """What the devices have been used for so far; None where they are not ours or not real."""
    draw: Draw = _nothing_drawn
    """Puts pictures of the result into the sweep's folder, for the tracker to take along."""
    known: Known = field(default_factory=dict)
    """What was read of trials that finished: a sweep is looked at after every step."""


@dataclass(frozen=True)
class Finished:
    """How a sweep ended."""

    result: SweepResult
    report: Written
    tracking: str | None
    """Where to look at it; None when tracking was not available."""
    notes: tuple[str, ...] = field(default=())


def run_sweep(sweep: Sweep) -> Finished:
    """Run what has not ended, and report on everything. Running it again only reports.

    Raises: StoreError; whatever the executor raises when it cannot run at all.
    """
    with sweep.folder.locked():
        began = time.time()
        comparable = _begin(sweep)
        earlier = _reported(sweep)
        if earlier is not None:
            return earlier
        tracking = Tracking(sweep.folder, sweep.open_tracker)
        try:
            uses, tracked = UseLog(sweep.folder, sweep.device_use), _tracked(sweep, tracking)
            _reuse(sweep, tracked)
            on_progress = uses.watching(tracked)
            _run_plan(sweep, on_progress)
            notes: list[str] = []
            if comparable:
                _go_on_refining(sweep, on_progress)
                notes += _refine(sweep, on_progress)
                notes += _confirm_best(sweep, on_progress)
                notes += _confirm_schedule(sweep, on_progress)
            _run_suites(sweep, on_progress)
            uses.write()
            result = whole_sweep(sweep.folder, sweep.known)
            report = write_report(result, sweep.folder.path)
            sweep.draw(result, sweep.folder.path)
        except BaseException:
            tracking.interrupted()
            raise
        tracking.finish(result, report, began)
        _say(tracking, sweep.on_progress)
        if tracking.failed is not None:
            notes.append(tracking.failed)
        elif tracking.location is not None:
            save_reported(sweep.folder, Reported(tracking.location, tuple(notes)))
        return Finished(result, report, tracking.location, tuple(notes))


def _reported(sweep: Sweep) -> Finished | None:
    """The report that an earlier run wrote and tracked, where nothing has changed since."""
    suites = unfinished_suites(sweep.folder, sweep.suites, retry_failed=sweep.retry_failed)
    if suites or _todo(sweep, sweep.jobs):
        return None
    report = written_to(sweep.folder.path)
    earlier = reported(sweep.folder)
    if earlier is None or not all(path.exists() for path in report.files):
        return None
    result = whole_sweep(sweep.folder, sweep.known)
    return Finished(result, report, earlier.tracking, earlier.notes)


_ABOUT_ITSELF = ("sweep_id", "created_unix_s")
_MEASURED_IN = ("environment", "fingerprint")


def _begin(sweep: Sweep) -> bool:
    """Record what is asked. What an earlier run of the same sweep recorded about itself stays.

    Returns whether something may be measured here beside what is there. In another environment
    nothing may; where nothing has to, the sweep is only reported, as it was measured.
    Raises: EnvironmentChanged.
    """
    known: dict[str, object] = {}
    comparable = True
    if (sweep.folder.path / "sweep.json").exists():
        earlier = sweep.folder.manifest()
        changed = changes(earlier, sweep.manifest)
        comparable = not changed
        if changed and _todo(sweep, sweep.jobs) and _has_records(sweep):
            raise EnvironmentChanged(
                f"{sweep.folder.path}: the environment has changed since this sweep was measured "
                f"({'; '.join(changed)}); give the experiment another name, or measure it anew "
                "with --fresh (what is there is set aside, not deleted)"
            )
        comparable = comparable or not _has_records(sweep)
        kept = _ABOUT_ITSELF if comparable else (*_ABOUT_ITSELF, *_MEASURED_IN)
        known = {name: earlier[name] for name in kept if name in earlier}
    sweep.folder.begin({**sweep.manifest, **known})
    begin_suites(sweep.folder, sweep.suites)
    if not sweep.jobs and (sweep.folder.path / "trials.json").exists():
        return comparable  # only suites are asked for: the trials of an earlier run stay
    sweep.folder.save_trials([job.trial for job in sweep.jobs])
    pairs = {job.trial.pair.key for job in sweep.jobs}
    sweep.folder.save_added([t for t in sweep.folder.added() if t.pair.key in pairs])
    return comparable


def _has_records(sweep: Sweep) -> bool:
    return any(sweep.folder.trial(job.trial.id).path.exists() for job in sweep.jobs)


def _reuse(sweep: Sweep, on_progress: OnProgress) -> None:
    """Take over what other sweeps measured. The control speaks of this machine now, so it is
    measured here, unless nothing else is."""
    if sweep.reuse is None:
        return
    comparisons = [job for job in sweep.jobs if job.trial.kind == "comparison"]
    taken = dict(sweep.reuse([job.trial for job in _todo(sweep, comparisons)]))
    if comparisons and not _todo(sweep, comparisons):
        taken |= sweep.reuse([job.trial for job in _todo(sweep, sweep.jobs)])
    by_id = {job.trial.id: job.trial for job in sweep.jobs}
    for trial_id, name in taken.items():
        outcome = sweep.folder.trial(trial_id).outcome()
        on_progress(Progress("trial_reused", by_id[trial_id], outcome=outcome, text=name))


def _run_plan(sweep: Sweep, on_progress: OnProgress) -> None:
    if sweep.steer is None or not sweep.jobs:
        _run(sweep, sweep.jobs, on_progress)
        return
    todo = _todo(sweep, sweep.jobs)
    search = sweep.steer([job.trial for job in todo])
    sweep.executor.run(todo, on_progress, search)
    sweep.folder.save_search(search.summary())


def _run(sweep: Sweep, jobs: Sequence[Job], on_progress: OnProgress) -> None:
    sweep.executor.run(_todo(sweep, jobs), on_progress)


def _todo(sweep: Sweep, jobs: Sequence[Job]) -> list[Job]:
    unfinished = sweep.folder.unfinished(
        [job.trial for job in jobs],
        retry_failed=sweep.retry_failed,
        retry_stopped=sweep.retry_stopped,
    )
    left = {trial.id for trial in unfinished}
    return [job for job in jobs if job.trial.id in left]


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
        for trial in further_trials(read_sweep(sweep.folder, sweep.known).trials, left):
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
    kept = [trial for trial in sweep.folder.added() if trial.kind != "confirmation"]
    notes: list[str] = []
    jobs: list[Job] = []
    for chosen in read_sweep(sweep.folder, sweep.known).chosen:
        added = [*kept, *(job.trial for job in jobs)]
        job = sweep.further(chosen.trial.confirmation(), added)
        if isinstance(job, str):
            notes.append(f"the best cell was not confirmed: {job}")
        else:
            jobs.append(job)
    if jobs:
        sweep.folder.save_added([*kept, *(job.trial for job in jobs)])
    todo = _todo(sweep, jobs)
    if todo:
        on_progress(Progress("confirming", text="the best cell again, on prompts not used before"))
        sweep.executor.run(todo, on_progress)
    return tuple(notes)


def _confirm_schedule(sweep: Sweep, on_progress: OnProgress) -> tuple[str, ...]:
    """A schedule put together from several cells was never run itself: so it is, as a candidate."""
    schedule = schedule_of(read_sweep(sweep.folder, sweep.known))
    if schedule is None or "attached" in schedule.based_on.trial.pair.speculative.engine:
        return ()
    key = schedule.deployment_pair().key
    kept = [trial for trial in sweep.folder.added() if trial.pair.key != key]
    jobs: list[Job] = []
    for trial in schedule.trials():
        job = sweep.further(trial, [*kept, *(job.trial for job in jobs)])
        if isinstance(job, str):
            return (f"the schedule {schedule.as_option()} was not verified: {job}",)
        jobs.append(job)
    sweep.folder.save_added([*kept, *(job.trial for job in jobs)])
    todo = _todo(sweep, jobs)
    if todo:
        text = "the speculation length by batch size, as one engine"
        on_progress(Progress("confirming", text=text))
        sweep.executor.run(todo, on_progress)
    return ()


def _tracked(sweep: Sweep, tracking: Tracking) -> OnProgress:
    def forward(event: Progress) -> None:
        if event.kind in ("trial_ended", "trial_reused") and event.trial is not None:
            tracking.log(event.trial)
        if event.kind == "suite_ended" and event.suite is not None:
            tracking.log_suite(next(job for job in sweep.suites if job.id == event.suite))
        sweep.on_progress(event)
        _say(tracking, sweep.on_progress)

    return forward


def _say(tracking: Tracking, on_progress: OnProgress) -> None:
    news = tracking.news()
    if news is not None:
        on_progress(Progress("tracking_unavailable", text=news))


def track_again(folder: SweepFolder, tracker: Tracker, draw: Draw = _nothing_drawn) -> SweepResult:
    """Rebuild a sweep's runs from its records alone. Raises: TrackingUnavailable, StoreError."""
    result = whole_sweep(folder)
    tracker.open_sweep(tracked_sweep(result.manifest))
    for trial in result.every:
        if trial.outcome is not None:
            own = folder.trial(trial.trial.id)
            tracker.log_run(tracked_run(trial, result.decision(trial), own, result.manifest))
    for suite in result.suite_runs:
        log_suite(tracker, folder, suite.job)
    report = write_report(result, folder.path)
    draw(result, folder.path)
    close_sweep(tracker, result, report)
    return result
