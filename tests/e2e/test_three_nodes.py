"""A sweep on a real three-node Ray cluster on this machine, a node of it killed in the middle."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.decide.sweep_result import read_sweep
from orchestrator.records import FailureClass
from orchestrator.store import SweepFolder
from tests.cluster_run.nodes import cluster_of

pytestmark = [pytest.mark.ray, pytest.mark.slow]

EXPERIMENT = """\
name: nodes
target: {model}
engine: {{simulated: {{profile: fast, acceptance: 0.8}}}}
sweep:
  speculation: [{{method: ngram, speculation_length: [2, 4]}}]
  batch_size: [1, 2]
workloads: [{{name: chat, prompts: bundled:chat, output_tokens: 24}}]
measure: {{pairs: {{min: 8, max: 8}}, looks: once}}
placement: {{strategy: {strategy}, gpus_per_replica: 1}}
"""
LIMIT_S = 240


def written(folder: Path, strategy: str) -> Path:
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "none"}')
    (model / "model.safetensors").write_bytes(b"")
    file = folder / "nodes.yaml"
    file.write_text(EXPERIMENT.format(model=model, strategy=strategy))
    return file


def start(address: str, file: Path, results: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cluster_run.drive", address, str(file), str(results)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def blocks(results: Path) -> dict[Path, int]:
    found = (results / "nodes").glob("*/blocks/0*.json")
    return {path: path.stat().st_mtime_ns for path in found}


NOTHING: dict[str, object] = {"actors": [], "groups": 0}


def left_on(address: str, *, engines: bool = False) -> dict[str, object]:
    """Ray's own view of actors and placement groups that are still there; of actors, with
    `engines`, only ours: Serve may stay up a moment longer."""
    asked = [sys.executable, "-m", "tests.cluster_run.left", address]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, object] = json.loads(told.stdout.splitlines()[-1])
    if engines:
        ours = ("ServeReplica", "PoolActor", "NodeAgent", "Janitor")
        actors = [str(name) for name in found["actors"] if str(name).startswith(ours)]  # type: ignore[attr-defined]
        found["actors"] = actors
    return found


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_node_is_killed_and_the_sweep_ends_with_every_trial(tmp_path: Path) -> None:
    file, results = written(tmp_path, "separate"), tmp_path / "results"
    with cluster_of({"num_gpus": 2}, {"num_gpus": 2}) as cluster:
        driver = start(cluster.address, file, results)
        wait_for(lambda: len(blocks(results)) >= 6, driver)
        lost = min(cluster.worker_nodes, key=lambda node: node.node_id)
        kept = blocks(results)
        cluster.remove_node(lost, allow_graceful=False)
        said, _ = driver.communicate(timeout=LIMIT_S)
        left = left_on(cluster.address)

    assert driver.returncode == 0, said
    assert left == NOTHING
    result = read_sweep(SweepFolder(results / "nodes"))
    assert len(result.controls) == 1
    assert len(result.trials) == 4
    for trial in result.every:
        assert trial.outcome is not None
        assert len(trial.pairs) == 8, said
        # A busy machine spoils blocks, rightly; nothing else may.
        assert trial.outcome.failure in (None, FailureClass.NO_VALID_PAIRS), said
    assert kept.items() <= blocks(results).items()  # whole pairs were not measured again
    use = json.loads(said.rpartition("USE ")[2].splitlines()[0])
    assert use["device_pairs"] == 2
    assert result.efficiency is not None
    assert result.efficiency.runs == 1
    assert 0 < (result.efficiency.fraction or 0) < 1
    assert result.simulated


def test_a_killed_driver_leaves_nothing_and_the_same_command_goes_on(tmp_path: Path) -> None:
    file, results = written(tmp_path, "shared"), tmp_path / "results"
    with cluster_of({"num_gpus": 1}, {"num_gpus": 1}) as cluster:
        first = start(cluster.address, file, results)
        wait_for(lambda: len(blocks(results)) >= 4, first)
        first.kill()
        said, _ = first.communicate()
        kept = {path: at for path, at in blocks(results).items() if paired(path)}
        end = time.monotonic() + LIMIT_S
        while left_on(cluster.address, engines=True) != NOTHING:
            assert time.monotonic() < end, left_on(cluster.address, engines=True)
        second = start(cluster.address, file, results)
        said, _ = second.communicate(timeout=LIMIT_S)
        left = left_on(cluster.address)

    assert second.returncode == 0, said
    assert left == NOTHING
    assert kept.items() <= blocks(results).items()
    result = read_sweep(SweepFolder(results / "nodes"))
    assert [len(trial.pairs) for trial in result.every][:5] == [8] * 5
    assert result.efficiency is not None
    assert result.efficiency.runs in (1, 2)  # the first wrote its use if a trial of it had ended


def paired(path: Path) -> bool:
    """Both blocks of the pair are there."""
    index = path.name.split("-")[0]
    return len(list(path.parent.glob(f"{index}-?.json"))) == 2
