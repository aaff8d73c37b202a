"""Runs one sweep with a stopwatch on its ports; prints what it saw as one line of JSON.

python one_sweep.py EXPERIMENT.yaml RESULTS [mlflow | none]
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from orchestrator.adapters.mlflow import MlflowProcess
from orchestrator.adapters.simulated.load_client import SimulatedLoadClient
from orchestrator.cli.preparation import prepare
from orchestrator.cli.running import simulated_engines
from orchestrator.cli.sweep import manifest_of
from orchestrator.errors import TrackingUnavailable
from orchestrator.ports import Progress, Tracker
from orchestrator.store import SweepFolder
from orchestrator.sweep import Sweep, run_sweep


class Stopwatch:
    """Seconds spent inside one method, over all calls."""

    def __init__(self, owner: Any, name: str) -> None:
        self.seconds = 0.0
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return inner(*args, **options)
            finally:
                self.seconds += time.perf_counter() - began

        setattr(owner, name, timed)


def main(file: Path, results: Path, tracking: str) -> None:
    began = time.perf_counter()
    measuring = Stopwatch(SimulatedLoadClient, "run_block")
    logging = Stopwatch(MlflowProcess, "log_run")
    flushing = Stopwatch(os, "fsync")
    process = psutil.Process()
    memory: list[int] = []
    trials_ended = [began]

    def on_progress(event: Progress) -> None:
        if event.kind == "trial_ended":
            memory.append(process.memory_info().rss)
            trials_ended[0] = time.perf_counter()

    prepared = prepare(file, offline=True)
    uri = f"sqlite:///{results.resolve() / 'mlflow.db'}"
    folder = SweepFolder(results / prepared.experiment.name)

    def open_tracker() -> Tracker:
        if tracking == "none":
            raise TrackingUnavailable("not asked for")
        return MlflowProcess(uri, experiment="scale", results=results)

    executor = simulated_engines(prepared, folder)
    planned = time.perf_counter()
    run_sweep(
        Sweep(
            jobs=prepared.jobs(),
            further=prepared.further,
            folder=folder,
            manifest=manifest_of(prepared, folder),
            executor=executor,
            open_tracker=open_tracker,
            on_progress=on_progress,
        )
    )
    ended = time.perf_counter()
    print(
        json.dumps(
            {
                "trials": len(memory),
                "trials_s": trials_ended[0] - planned,
                "end_s": ended - trials_ended[0],
                "prepare_s": planned - began,
                "measured_s": measuring.seconds,
                "logging_s": logging.seconds,
                "flush_s": flushing.seconds,
                "cpu_s": sum(process.cpu_times()[:2]),
                "rss_bytes": memory,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
