"""Tracking goes beside the sweep: it never holds it up, and says once what went wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.decide.sweep_result import read_sweep
from orchestrator.errors import TrackingUnavailable
from orchestrator.ports import Tracker
from orchestrator.report.written import Written
from orchestrator.store import SweepFolder
from orchestrator.tracking import Tracking
from tests.sweep.world import RememberingTracker, run_story, write_experiment


class StuckTracker(RememberingTracker):
    """Like a server that takes a run and never answers; until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.closed_down = threading.Event(), threading.Event()

    def log_run(self, run: Any) -> None:
        self.asked.set()
        assert self.closed_down.wait(60)
        raise TrackingUnavailable("closed")

    def close(self) -> None:
        self.closed_down.set()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    folder = tmp_path_factory.mktemp("tracking")
    run_story(write_experiment(folder, lengths="[2]"), folder / "r")
    return SweepFolder(folder / "r" / "story")


def tracking(folder: SweepFolder, tracker: Tracker, patience_s: float = 60.0) -> Tracking:
    return Tracking(folder, lambda: tracker, patience_s=patience_s)


def finish(one: Tracking, folder: SweepFolder) -> None:
    one.finish(
        read_sweep(folder),
        Written(folder.path / "report.html", folder.path / "report.md"),
        began=0.0,
    )


def test_a_server_that_does_not_answer_is_given_up(measured: SweepFolder) -> None:
    tracker = StuckTracker()
    one = tracking(measured, tracker, patience_s=0.05)
    for trial in measured.trials():
        one.log(trial)  # returns at once, whatever the server does
    assert tracker.asked.wait(60)
    finish(one, measured)
    assert one.location is None
    news = one.news()
    assert news is not None
    assert "track story" in news
    assert one.news() is None  # once
    assert tracker.closed_down.is_set()


def test_everything_logged_before_the_end_is_logged(measured: SweepFolder) -> None:
    tracker = RememberingTracker()
    one = tracking(measured, tracker)
    for trial in measured.trials():
        one.log(trial)
    finish(one, measured)
    assert tracker.runs.keys() == {trial.id for trial in measured.trials()}
    assert len(tracker.closed) == 1
    assert one.location == "memory"


def test_an_interrupted_sweep_says_so_and_does_not_wait_for_what_is_left(
    measured: SweepFolder,
) -> None:
    statuses: list[str] = []

    class Closing(RememberingTracker):
        def close_sweep(self, *, status: str = "", **_: Any) -> None:
            statuses.append(status)

    one = tracking(measured, Closing())
    one.interrupted()
    assert statuses == ["KILLED"]


@pytest.mark.parametrize("where", ["open_sweep", "log_run"])
def test_a_defect_is_not_swallowed(measured: SweepFolder, where: str) -> None:
    tracker = RememberingTracker()

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    setattr(tracker, where, broken)
    one = tracking(measured, tracker)
    one.log(measured.trials()[0])
    with pytest.raises(ZeroDivisionError):
        finish(one, measured)


def test_records_that_cannot_be_read_are_news_not_a_defect(
    measured: SweepFolder, tmp_path: Path
) -> None:
    import shutil

    folder = SweepFolder(tmp_path / "story")
    shutil.copytree(measured.path, folder.path)
    trial = folder.trials()[0]
    result = read_sweep(folder)
    next(folder.trial(trial.id).blocks_path.glob("000-?.parquet")).write_bytes(b"")
    one = tracking(folder, RememberingTracker())
    one.log(trial)
    one.finish(result, Written(folder.path / "report.html", folder.path / "report.md"), began=0.0)
    news: Callable[[], str | None] = one.news
    assert "cannot be read back" in str(news())
