"""The story of a sweep, on simulated engines: what runs, what is kept, what is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.decide.verdict import Verdict
from orchestrator.errors import StoreError
from orchestrator.store import SweepFolder
from orchestrator.sweep import run_sweep, track_again
from tests.sweep.world import (
    Events,
    RememberingTracker,
    run_story,
    sweep_of,
    with_retry,
    write_experiment,
)


def test_every_cell_is_measured_controlled_confirmed_and_tracked(tmp_path: Path) -> None:
    tracker, events = RememberingTracker(), Events()
    file = write_experiment(tmp_path)
    finished = run_story(file, tmp_path / "r", tracker=tracker, on_progress=events)
    result = finished.result
    assert len(result.trials) == 4  # two K, two batch sizes
    assert len(result.controls) == 1
    assert len(result.confirmations) == 1
    assert len(tracker.runs) == 6
    assert {run.status for run in tracker.runs.values()} == {"FINISHED"}
    assert tracker.closed[-1]["cells"] == 4
    assert events.kinds().count("trial_ended") == 6
    assert finished.tracking == "memory"
    control = result.control()
    assert control is not None
    assert control.covers_one
    assert result.best is not None
    assert result.confirmations[0].trial.cell == result.best.trial.cell
    assert all(trial.headline.verdict is Verdict.FASTER for trial in result.trials)


def test_simulated_is_written_on_everything(tmp_path: Path) -> None:
    tracker = RememberingTracker()
    finished = run_story(write_experiment(tmp_path), tmp_path / "r", tracker=tracker)
    assert "SIMULATED" in finished.report.markdown.read_text().splitlines()[0]
    assert {run.tags["simulated"] for run in tracker.runs.values()} == {"true"}
    assert tracker.sweeps[0].tags["simulated"] == "true"


def test_the_confirmation_uses_prompts_that_its_engines_have_not_seen(tmp_path: Path) -> None:
    finished = run_story(write_experiment(tmp_path), tmp_path / "r")
    (confirmation,) = finished.result.confirmations
    folder = SweepFolder(tmp_path / "r" / "story")

    def prompts(trial_id: str) -> set[str]:
        own = folder.trial(trial_id)
        blocks = [block for pair in own.pairs() for block in pair] + list(own.warmup())
        return {request.prompt_id for block in blocks for request in block.requests}

    same_engines = [
        trial.trial.id
        for trial in finished.result.trials
        if trial.trial.pair.key == confirmation.trial.pair.key
    ]
    seen = set().union(*(prompts(trial_id) for trial_id in same_engines))
    assert len(same_engines) == 2
    assert not prompts(confirmation.trial.id) & seen


def test_running_it_again_only_reports(tmp_path: Path) -> None:
    file, tracker, events = write_experiment(tmp_path), RememberingTracker(), Events()
    first = run_story(file, tmp_path / "r")
    again = run_story(file, tmp_path / "r", tracker=tracker, on_progress=events)
    assert events.seen == []
    assert tracker.logged == 0
    assert [t.headline.speedup for t in again.result.trials] == [
        t.headline.speedup for t in first.result.trials
    ]
    assert again.result.manifest["sweep_id"] == first.result.manifest["sweep_id"]


def test_a_report_that_still_holds_is_neither_written_nor_tracked_again(tmp_path: Path) -> None:
    file, results = write_experiment(tmp_path), tmp_path / "r"
    first = run_story(file, results)
    written = first.report.page.stat().st_mtime_ns
    tracker = RememberingTracker()
    again = run_story(file, results, tracker=tracker)
    assert again.report.page.stat().st_mtime_ns == written
    assert (again.tracking, again.notes) == (first.tracking, first.notes)
    assert tracker.sweeps == tracker.closed == []

    again.report.page.unlink()
    assert run_story(file, results, tracker=tracker).report.page.exists()
    assert len(tracker.closed) == 1


@pytest.mark.parametrize("changed", ["a record", "what is asked"])
def test_a_report_that_holds_no_longer_is_written_and_tracked_again(
    tmp_path: Path, changed: str
) -> None:
    file, results = write_experiment(tmp_path), tmp_path / "r"
    first = run_story(file, results)
    if changed == "a record":
        own = SweepFolder(results / "story").trial(first.result.trials[0].trial.id)
        os.utime(next(own.blocks_path.glob("000-A.json")), (1, 1))
    else:
        file.write_text(file.read_text() + "cost: {device_hour: 2.0, currency: USD}\n")
    tracker = RememberingTracker()
    run_story(file, results, tracker=tracker)
    assert len(tracker.closed) == 1


def test_a_report_that_was_not_tracked_is_tried_again(tmp_path: Path) -> None:
    file, results = write_experiment(tmp_path), tmp_path / "r"
    run_story(file, results, tracker=RememberingTracker(down=True))
    tracker = RememberingTracker()
    assert run_story(file, results, tracker=tracker).tracking == "memory"


def test_a_longer_list_of_lengths_measures_only_what_is_new(tmp_path: Path) -> None:
    run_story(write_experiment(tmp_path, lengths="[2]"), tmp_path / "r")
    events = Events()
    run_story(write_experiment(tmp_path, lengths="[2, 4]"), tmp_path / "r", on_progress=events)
    started = [e.trial for e in events.seen if e.kind == "trial_started"]
    assert {t.cell.speculation_length for t in started if t is not None} == {4}


def test_tracking_that_is_down_loses_nothing_and_is_said_once(tmp_path: Path) -> None:
    events = Events()
    finished = run_story(
        write_experiment(tmp_path),
        tmp_path / "r",
        tracker=RememberingTracker(down=True),
        on_progress=events,
    )
    assert len(finished.result.trials) == 4
    assert finished.tracking is None
    assert [note for note in finished.notes if "track story" in note]
    assert events.kinds().count("tracking_unavailable") == 1
    later = RememberingTracker()
    track_again(SweepFolder(tmp_path / "r" / "story"), later)
    assert len(later.runs) == 6


def test_tracking_that_dies_in_the_middle_is_rebuilt_to_the_same_state(tmp_path: Path) -> None:
    file = write_experiment(tmp_path)
    whole, dying = RememberingTracker(), RememberingTracker(dies_after=2)
    run_story(file, tmp_path / "r", tracker=dying)
    assert len(dying.runs) == 2
    run_story(file, tmp_path / "other", tracker=whole)
    rebuilt = RememberingTracker()
    track_again(SweepFolder(tmp_path / "r" / "story"), rebuilt)
    assert {i: dict(run.metrics) for i, run in rebuilt.runs.items()}.keys() == whole.runs.keys()
    assert {run.tags["verdict"] for run in rebuilt.runs.values()} == {
        run.tags["verdict"] for run in whole.runs.values()
    }


def test_a_failure_is_an_outcome_and_the_sweep_goes_on(tmp_path: Path) -> None:
    simulated = "{profile: fast, speculative: {faults: {start_failure: out_of_memory}}}"
    file = write_experiment(tmp_path, simulated=simulated)
    tracker = RememberingTracker()
    finished = run_story(file, tmp_path / "r", tracker=tracker)
    assert len(finished.result.controls[0].pairs) >= 3
    ends = [trial.outcome.status for trial in finished.result.trials if trial.outcome is not None]
    # Out of memory alone: with more in flight it need not be tried, and the outcome says why.
    assert ends == ["failed", "stopped", "failed", "stopped"]
    assert {run.tags.get("failure") for run in tracker.runs.values()} == {None, "out_of_memory"}
    text = finished.report.markdown.read_text()
    assert "## Failed trials" in text
    assert "out of memory while allocating the KV cache (planted)" in text


def test_failed_trials_run_again_when_asked(tmp_path: Path) -> None:
    simulated = "{profile: fast, speculative: {faults: {start_failure: start_failed}}}"
    file = write_experiment(tmp_path, simulated=simulated)
    run_story(file, tmp_path / "r")
    quiet, asked = Events(), Events()
    run_story(file, tmp_path / "r", on_progress=quiet)
    assert "trial_started" not in quiet.kinds()
    run_sweep(with_retry(sweep_of(file, tmp_path / "r", on_progress=asked)[0]))
    assert asked.kinds().count("trial_started") == 4


def test_a_killed_sweep_goes_on_and_measures_nothing_twice(tmp_path: Path) -> None:
    """SIGKILL of the whole process in mid-sweep, then the same again."""
    file = write_experiment(tmp_path, name="killed")
    code = (
        "import sys, time; from pathlib import Path\n"
        "from tests.sweep.world import run_story\n"
        "pairs = 0\n"
        "def slowly(event):\n"
        "    global pairs\n"
        "    pairs += event.kind == 'pair'\n"
        "    if pairs == 7: print('now', flush=True); time.sleep(600)\n"
        "run_story(Path(sys.argv[1]), Path(sys.argv[2]), on_progress=slowly)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(file), str(tmp_path / "r")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    blocks = {
        path: path.stat().st_mtime_ns
        for path in (tmp_path / "r" / "killed").glob("*/blocks/0*.json")
    }
    assert len(blocks) == 14  # seven whole pairs
    time.sleep(0.01)
    finished = run_story(file, tmp_path / "r")
    assert all(path.stat().st_mtime_ns == when for path, when in blocks.items())
    assert not any(trial.failed for trial in finished.result.every)
    assert len(finished.result.every) == 6


def test_two_sweeps_do_not_write_into_one_folder(tmp_path: Path) -> None:
    sweep, _ = sweep_of(write_experiment(tmp_path), tmp_path / "r")
    with sweep.folder.locked(), pytest.raises(StoreError, match="another sweep"):
        run_sweep(sweep)


def test_the_manifest_tells_how_to_repeat_it(tmp_path: Path) -> None:
    file = write_experiment(tmp_path)
    run_story(file, tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "story" / "sweep.json").read_text())
    assert manifest["text"] == file.read_text()
    assert manifest["environment"]["processor"]["model"]
    assert manifest["prompts"]["chat"]["hash"]
    assert manifest["experiment"]["measure"]["pairs"] == {"min": 3, "max": 5}
