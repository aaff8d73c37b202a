"""A whole sweep in memory: simulated engines, and a tracker that remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator.cli.preparation import Prepared, prepare
from orchestrator.cli.running import Engines, simulated_engines
from orchestrator.cli.searching import steer
from orchestrator.cli.sweep import manifest_of
from orchestrator.errors import TrackingUnavailable
from orchestrator.ports import OnProgress, Progress, TrackedRun, TrackedSweep
from orchestrator.store import SweepFolder
from orchestrator.sweep import Finished, Sweep, run_sweep

EXPERIMENT = """\
name: {name}
target: simulated-8b
engine:
  simulated: {simulated}
sweep:
  speculation:
    - {{method: ngram, speculation_length: {lengths}}}
  batch_size: [1, 4]
  temperature: [0.0]
workloads:
  - {{name: chat, prompts: bundled:chat, output_tokens: 24}}
measure: {{pairs: {{min: 3, max: 5}}}}
seed: 3
{more}
"""


def write_experiment(
    folder: Path,
    *,
    name: str = "story",
    simulated: str = "{profile: fast, acceptance: 0.8}",
    lengths: str = "[2, 4]",
    more: str = "",
) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(EXPERIMENT.format(name=name, simulated=simulated, lengths=lengths, more=more))
    return path


@dataclass
class RememberingTracker:
    """ports.Tracker in memory. `down` makes it fail like a server that is gone; `dies_after`, as
    soon as it holds so many runs."""

    down: bool = False
    dies_after: int | None = None
    sweeps: list[TrackedSweep] = field(default_factory=list)
    runs: dict[str, TrackedRun] = field(default_factory=dict)
    logged: int = 0
    closed: list[Mapping[str, float]] = field(default_factory=list)

    def _answer(self) -> None:
        if self.down:
            raise TrackingUnavailable("MLflow at nowhere cannot be written; `track SWEEP` later")

    def open_sweep(self, sweep: TrackedSweep) -> None:
        self._answer()
        self.sweeps.append(sweep)

    def log_run(self, run: TrackedRun) -> None:
        self._answer()
        self.runs[run.trial_id] = run
        self.logged += 1
        self.down = self.down or self.logged == self.dies_after

    def close_sweep(self, *, metrics: Mapping[str, float], **_: Any) -> None:
        self._answer()
        self.closed.append(metrics)

    def location(self) -> str:
        return "memory"

    def close(self) -> None: ...


@dataclass
class Events:
    """Remembers what was announced."""

    seen: list[Progress] = field(default_factory=list)

    def __call__(self, event: Progress) -> None:
        self.seen.append(event)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.seen]


def sweep_of(
    file: Path,
    results: Path,
    *,
    tracker: RememberingTracker | None = None,
    on_progress: OnProgress | None = None,
    executor: Engines | None = None,
    suites: tuple[str, ...] | None = None,
    retry_stopped: bool = False,
) -> tuple[Sweep, Prepared]:
    prepared = prepare(file, offline=True, suites=suites)
    folder = SweepFolder(results / prepared.experiment.name)
    kept = tracker or RememberingTracker()
    engines = executor or simulated_engines(prepared, folder)
    return (
        Sweep(
            jobs=prepared.jobs(),
            further=prepared.further,
            further_rungs=prepared.experiment.load.refine,
            folder=folder,
            manifest=manifest_of(prepared, folder),
            executor=engines,
            suites=prepared.suite_jobs(),
            suite_executor=engines,
            open_tracker=lambda: kept,
            on_progress=on_progress or Events(),
            steer=steer(prepared, folder),
            retry_stopped=retry_stopped,
        ),
        prepared,
    )


def run_story(file: Path, results: Path, **ports: Any) -> Finished:
    return run_sweep(sweep_of(file, results, **ports)[0])


def with_retry(sweep: Sweep) -> Sweep:
    return replace(sweep, retry_failed=True)
