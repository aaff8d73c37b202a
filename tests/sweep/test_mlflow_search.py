"""The documented search strings are ones that MLflow understands, and find what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlflow import MlflowClient

from orchestrator.adapters.mlflow import MlflowTracker, local_tracking_uri
from orchestrator.store import SweepFolder
from orchestrator.sweep import track_again
from tests.sweep.world import run_story, write_experiment

pytestmark = pytest.mark.slow  # a fresh sqlite store takes seconds to migrate

STRINGS = re.findall(
    r"```\n(.+)\n```", (Path(__file__).parents[2] / "docs" / "mlflow.md").read_text("utf-8")
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[MlflowClient, str]:
    folder = tmp_path_factory.mktemp("mlflow")
    run_story(write_experiment(folder, lengths="[4]"), folder / "r")
    uri = local_tracking_uri(folder)
    tracker = MlflowTracker(uri, experiment="story", results=folder)
    track_again(SweepFolder(folder / "r" / "story"), tracker)
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("story")
    assert experiment is not None
    return client, str(experiment.experiment_id)


def found(store: tuple[MlflowClient, str], text: str) -> list[str]:
    client, experiment = store
    return [run.info.run_name for run in client.search_runs([experiment], text)]


def test_every_documented_string_is_understood(store: tuple[MlflowClient, str]) -> None:
    assert len(STRINGS) >= 9
    for text in STRINGS:
        found(store, text)


def test_they_find_what_they_say(store: tuple[MlflowClient, str]) -> None:
    faster = found(store, "tags.kind = 'comparison' and tags.verdict = 'faster'")
    assert faster
    assert all(name.startswith("ngram K=4") for name in faster)
    assert found(store, "tags.kind = 'aa_control'")[0].startswith("A/A")
    assert found(store, "tags.simulated = 'false'") == []


def test_the_parent_says_what_to_do_and_holds_it(store: tuple[MlflowClient, str]) -> None:
    client, experiment = store
    (parent,) = client.search_runs([experiment], "tags.kind = 'sweep'")
    note = parent.data.tags["mlflow.note.content"]
    assert note.index("SIMULATED") < note.index("artifacts of this run")
    assert parent.data.tags["advice"].startswith("on")
    names = {artifact.path for artifact in client.list_artifacts(parent.info.run_id)}
    assert {"report.md", "decision.json", "deploy.yaml", "sweep.json"} <= names


def test_every_child_has_a_note_with_its_speedups(store: tuple[MlflowClient, str]) -> None:
    client, experiment = store
    for run in client.search_runs([experiment], "tags.kind = 'comparison'"):
        note = run.data.tags["mlflow.note.content"]
        assert "| speedup_ttft |" in note
        assert "SIMULATED" in note
