"""What is logged is what a person finds in MLflow's UI; logging again replaces, never doubles."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from mlflow import MlflowClient

from orchestrator.adapters.mlflow import (
    MlflowProcess,
    MlflowTracker,
    local_file,
    local_tracking_uri,
)
from orchestrator.errors import TrackingUnavailable
from orchestrator.ports import TrackedDataset, TrackedRun, TrackedSweep

pytestmark = pytest.mark.slow  # a fresh sqlite store takes seconds to migrate


SWEEP = TrackedSweep("demo", "sweep-1", "What was asked.", {"target": "m"}, {"team": "a"})


def tracked(tmp_path: Path, trial_id: str = "t1", speedup: float = 1.25) -> TrackedRun:
    artifact = tmp_path / "environment.json"
    artifact.write_text("{}")
    return TrackedRun(
        trial_id=trial_id,
        name="ngram K=4 · chat",
        params={"method": "ngram", "speculation_length": 4, "options": {"a": [1, 2]}},
        metrics={"speedup_throughput": speedup, "acceptance_length": float("nan")},
        steps=({"speedup_throughput": 1.1}, {"speedup_throughput": 1.3}),
        tags={"verdict": "faster"},
        note="note",
        artifacts={"environment.json": artifact},
        dataset=TrackedDataset("chat", "bundled:chat", "abc", {"prompts": 60}),
        started_unix_s=1_700_000_000.0,
        ended_unix_s=1_700_000_060.0,
        status="FINISHED",
        system_steps=({"baseline/host_cpu_fraction_mean": 0.5},) * 2,
    )


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return local_tracking_uri(tmp_path_factory.mktemp("mlflow"))


def open_tracker(uri: str, tmp_path: Path, experiment: str) -> MlflowTracker:
    tracker = MlflowTracker(uri, experiment=experiment, results=tmp_path)
    tracker.open_sweep(SWEEP)
    return tracker


def children(uri: str, experiment: str) -> list[object]:
    client = MlflowClient(tracking_uri=uri)
    found = client.get_experiment_by_name(experiment)
    assert found is not None
    return list(client.search_runs([found.experiment_id], "tags.`orchestrator.trial_id` != ''"))


def test_the_local_store_is_written_ahead_but_not_over_a_network(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No transaction waits for the disk; a log needs memory that all readers share, though."""
    open_tracker(uri, tmp_path, "ahead")
    with sqlite3.connect(uri.removeprefix("sqlite:///")) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    said = {}
    for medium in ("network", None, "solid_state"):
        monkeypatch.setattr(local_file, "storage", lambda _, medium=medium: {"medium": medium})
        said[medium] = local_file._may(uri)
    assert said == {"network": False, None: True, "solid_state": True}
    assert not local_file._may("http://127.0.0.1:5000")


def test_a_trial_is_a_child_run_with_params_metrics_steps_tags_inputs_and_artifacts(
    uri: str, tmp_path: Path
) -> None:
    tracker = open_tracker(uri, tmp_path, "one")
    tracker.log_run(tracked(tmp_path))
    page = tmp_path / "report.html"
    page.write_text("<p>")
    note = {"mlflow.note.content": "Read `report.html`."}
    artifacts = {"report.html": page}
    tracker.close_sweep(metrics={"cells": 1}, tags=note, artifacts=artifacts, status="FINISHED")
    client = MlflowClient(tracking_uri=uri)
    (child,) = children(uri, "one")
    run = client.get_run(child.info.run_id)  # type: ignore[attr-defined]
    assert run.data.params["speculation_length"] == "4"
    assert json.loads(run.data.params["options"]) == {"a": [1, 2]}
    assert run.data.metrics["speedup_throughput"] == 1.25
    assert "acceptance_length" not in run.data.metrics  # undefined is left out, not 0
    history = client.get_metric_history(run.info.run_id, "pair/speedup_throughput")
    assert [(metric.step, metric.value) for metric in history] == [(0, 1.1), (1, 1.3)]
    system = client.get_metric_history(run.info.run_id, "system/baseline/host_cpu_fraction_mean")
    began = run.info.start_time
    assert [metric.timestamp - began for metric in system] == [30_000, 60_000]
    assert run.data.tags["verdict"] == "faster"
    assert run.inputs.dataset_inputs[0].dataset.name == "chat"
    assert [item.path for item in client.list_artifacts(run.info.run_id)] == ["environment.json"]
    assert run.info.end_time - run.info.start_time == 60_000
    parent = client.get_run(run.data.tags["mlflow.parentRunId"])
    assert parent.data.params == {"target": "m"}
    assert parent.info.status == "FINISHED"
    experiment = client.get_experiment(run.info.experiment_id)
    place = f"#/experiments/{run.info.experiment_id}/runs/{parent.info.run_id}/artifacts"
    for tags in (parent.data.tags, experiment.tags):
        assert tags["mlflow.note.content"] == f"Read [report.html]({place}/report.html)."


def test_logging_again_replaces_the_run_and_reopens_the_parent(uri: str, tmp_path: Path) -> None:
    for speedup in (1.25, 1.5):
        tracker = open_tracker(uri, tmp_path, "again")
        tracker.log_run(tracked(tmp_path, speedup=speedup))
        tracker.close_sweep(metrics={}, tags={}, artifacts={}, status="FINISHED")
    (child,) = children(uri, "again")
    assert child.data.metrics["speedup_throughput"] == 1.5  # type: ignore[attr-defined]
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("again")
    assert experiment is not None
    parents = client.search_runs([experiment.experiment_id], "tags.kind = 'sweep'")
    assert len(parents) == 1


def test_a_verdict_that_was_taken_back_amends_the_run(uri: str, tmp_path: Path) -> None:
    tracker = open_tracker(uri, tmp_path, "amended")
    first = tracked(tmp_path)
    tracker.log_run(first)
    (before,) = children(uri, "amended")
    taken_back = {"tags": {"verdict": "cannot tell"}, "note": "withheld"}
    tracker.log_run(replace(first, **taken_back, metrics={**first.metrics, "cells": 40.0}))
    (after,) = children(uri, "amended")
    assert after.info.run_id == before.info.run_id  # type: ignore[attr-defined]
    assert after.data.tags["verdict"] == "cannot tell"  # type: ignore[attr-defined]
    assert after.data.tags["mlflow.note.content"] == "withheld"  # type: ignore[attr-defined]
    assert after.data.metrics["cells"] == 40.0  # type: ignore[attr-defined]
    assert after.data.metrics["speedup_throughput"] == 1.25  # type: ignore[attr-defined]

    tracker.log_run(replace(first, steps=(), tags={}))  # measured again: another run
    (again,) = children(uri, "amended")
    assert again.info.run_id != before.info.run_id  # type: ignore[attr-defined]
    assert "verdict" not in again.data.tags  # type: ignore[attr-defined]


def test_records_beside_a_local_store_are_linked(uri: str, tmp_path: Path) -> None:
    records = tmp_path / "records"
    (records / "blocks").mkdir(parents=True)
    (records / "blocks" / "000-A.json").write_text("{}")
    tracker = open_tracker(uri, tmp_path, "linked")
    tracker.log_run(replace(tracked(tmp_path), artifacts={"trial": records}))
    (child,) = children(uri, "linked")
    client = MlflowClient(tracking_uri=uri)
    run_id = child.info.run_id  # type: ignore[attr-defined]
    assert [a.path for a in client.list_artifacts(run_id, "trial/blocks")] == [
        "trial/blocks/000-A.json"
    ]
    assert (records / "blocks" / "000-A.json").stat().st_nlink == 2


def test_a_server_that_is_down_is_said_so_soon(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(TrackingUnavailable, match=r"127\.0\.0\.1:9.*track SWEEP"):
        MlflowTracker("http://127.0.0.1:9", experiment="x", results=tmp_path)
    assert time.monotonic() - began < 60  # a hang would be minutes; not a measure of speed


def test_a_folder_that_cannot_hold_the_store_is_said_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(TrackingUnavailable, match="cannot be written"):
        MlflowTracker(f"sqlite:///{blocked}/mlflow.db", experiment="x", results=tmp_path)


def test_a_process_of_its_own_logs_the_same_and_ends_when_it_is_closed(
    uri: str, tmp_path: Path
) -> None:
    tracker = MlflowProcess(uri, experiment="process", results=tmp_path)
    tracker.open_sweep(SWEEP)
    tracker.log_run(tracked(tmp_path))
    tracker.close_sweep(metrics={"cells": 1}, tags={}, artifacts={}, status="FINISHED")
    (child,) = children(uri, "process")
    assert child.data.metrics["speedup_throughput"] == 1.25  # type: ignore[attr-defined]
    assert tracker._process is not None
    process = psutil.Process(tracker._process.pid)
    tracker.close()
    assert not process.is_running()
    with pytest.raises(TrackingUnavailable, match="track SWEEP"):
        tracker.log_run(tracked(tmp_path))


def test_a_process_says_what_its_library_says(tmp_path: Path) -> None:
    tracker = MlflowProcess("http://127.0.0.1:9", experiment="x", results=tmp_path)
    try:
        with pytest.raises(TrackingUnavailable, match=r"127\.0\.0\.1:9.*track SWEEP"):
            tracker.open_sweep(SWEEP)
    finally:
        tracker.close()


def test_a_process_that_dies_is_said_so(uri: str, tmp_path: Path) -> None:
    tracker = MlflowProcess(uri, experiment="dies", results=tmp_path)
    tracker.open_sweep(SWEEP)
    assert tracker._process is not None
    tracker._process.kill()
    with pytest.raises(TrackingUnavailable, match="ended"):
        tracker.log_run(tracked(tmp_path))
    tracker.close()
