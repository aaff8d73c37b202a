"""What Tune's callbacks make of a disk that is full."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from orchestrator.adapters.ray_tune.progress import ProgressCallback, WhenRecordsCannotBeWritten
from orchestrator.errors import StoreError
from orchestrator.ports import Progress
from orchestrator.store import SweepFolder
from tests.search.cells import comparisons


def full(event: Progress) -> None:
    raise StoreError("runs/1.json: the disk is full")


def test_records_that_a_listener_cannot_write_end_the_run_and_are_no_failure_of_tune(
    tmp_path: Path,
) -> None:
    trial = comparisons()[0]
    callback = ProgressCallback({trial.id: trial}, None, SweepFolder(tmp_path), full)
    stopper = WhenRecordsCannotBeWritten(callback)
    assert not stopper.stop_all()
    tune_trial: Any = SimpleNamespace(config={"point": {"id": trial.id}})
    callback.on_trial_start(1, [], tune_trial)
    assert callback.store_failed == "runs/1.json: the disk is full"
    assert stopper.stop_all()
