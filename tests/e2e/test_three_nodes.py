"""A sweep on a real three-node Ray cluster on this machine, a node of it killed in the middle."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from orchestrator.adapters.ray_local import free_port
from orchestrator.decide.sweep_result import read_sweep
from orchestrator.records import FailureClass
from orchestrator.store import SweepFolder
from tests.cluster_run.drive import ROOT, begin
from tests.cluster_run.nodes import cluster_of

pytestmark = [pytest.mark.ray, pytest.mark.slow]

EXPERIMENT = """\
name: nodes
target: {model}
engine: {{stand_in: {{profile: fast, acceptance: 0.8}}}}
sweep:
  speculation: [{{method: ngram, speculation_length: [2, 4]}}]
  batch_size: [1, 2]
workloads: [{{name: chat, prompts: bundled:chat, output_tokens: 24}}]
measure: {{pairs: {{min: 8, max: 8}}, looks: once}}
placement: {{strategy: {strategy}, gpus_per_replica: 1{more}}}
"""
LIMIT_S = 240


def written(folder: Path, strategy: str, more: str = "") -> Path:
    model = folder / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text('{"model_type": "llama", "vocab_size": 100}')
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    file = folder / "nodes.yaml"
    file.write_text(EXPERIMENT.format(model=model, strategy=strategy, more=more))
    return file


def start(address: str, file: Path, results: Path) -> subprocess.Popen[str]:
    return begin("tests.cluster_run.drive", *sweep_arguments(address, file, results))


def sweep_arguments(address: str, file: Path, results: Path) -> list[str]:
    return ["sweep", str(file), "--results", str(results), "--address", address, "--offline"]


def blocks(results: Path) -> dict[Path, int]:
    found = (results / "nodes").glob("*/blocks/0*.json")
    return {path: path.stat().st_mtime_ns for path in found}


NOTHING: dict[str, object] = {"actors": [], "groups": 0, "on_nodes": 0}
ENDED = (0, 4, 5)
"""A busy machine spoils blocks, rightly."""


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

    assert driver.returncode in ENDED, said
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
    assert result.efficiency is not None
    assert result.efficiency.device_pairs == 2
    assert result.efficiency.runs == 1
    assert 0 < (result.efficiency.fraction or 0) < 1
    assert result.simulated


MODELS = ("A100", "L4")


def all_blocks(results: Mapping[str, Path]) -> dict[Path, int]:
    """Those of whole pairs, of every sweep."""
    found = [one for folder in results.values() for one in blocks(folder).items()]
    return {path: at for path, at in found if paired(path)}


def test_two_sweeps_at_once_one_killed_one_interrupted_go_on_as_jobs(tmp_path: Path) -> None:
    """Neither is disturbed by the other or by its end, both leave nothing, and both go on where
    they stopped: one through the Jobs API, one through `ray job submit`."""
    files = {
        model: written(tmp_path / model, "shared", f", accelerator: {model}") for model in MODELS
    }
    results = {model: tmp_path / model / "results" for model in MODELS}
    nodes = [{"num_gpus": 1, "labels": {"ray.io/accelerator-type": model}} for model in MODELS]
    port = free_port()
    dashboard = {"include_dashboard": True, "dashboard_host": "127.0.0.1", "dashboard_port": port}
    with cluster_of(*nodes, head=dashboard) as cluster:
        address = cluster.address
        killed, interrupted = (start(address, files[model], results[model]) for model in MODELS)
        wait_for(lambda: len(blocks(results["A100"])) >= 4, killed)
        wait_for(lambda: len(blocks(results["L4"])) >= 4, interrupted)
        held = left_on(address)
        killed.kill()
        killed.communicate()
        before = len(blocks(results["L4"]))
        wait_for(lambda: len(blocks(results["L4"])) >= before + 2, interrupted)
        interrupted.send_signal(signal.SIGINT)
        said, _ = interrupted.communicate(timeout=LIMIT_S)
        kept = {
            path: at for r in results.values() for path, at in blocks(r).items() if paired(path)
        }
        end = time.monotonic() + LIMIT_S
        while left_on(address, engines=True) != NOTHING:
            assert time.monotonic() < end, left_on(address, engines=True)
        ended = as_jobs(
            f"http://127.0.0.1:{port}",
            {m: sweep_arguments("auto", files[m], results[m]) for m in MODELS},
        )
        left = left_on(address, engines=True)

    assert held["groups"] == held["on_nodes"] == 2
    assert interrupted.returncode == 130, said
    assert left == NOTHING
    for model in MODELS:
        assert ended[model][0] in ("SUCCEEDED", "FAILED"), ended[model]  # 4 and 5 are no success
        assert "verdict" in ended[model][1], ended[model]
        result = read_sweep(SweepFolder(results[model] / "nodes"))
        assert [len(trial.pairs) for trial in result.every][:5] == [8] * 5, ended[model]
    assert kept.items() <= all_blocks(results).items()


def as_jobs(dashboard: str, arguments: Mapping[str, list[str]]) -> dict[str, tuple[str, str]]:
    """Submits one sweep through the Jobs API and one through `ray job submit`, both at once; how
    each ended and what it printed, by name."""
    from ray.job_submission import JobStatus, JobSubmissionClient

    client = JobSubmissionClient(dashboard)
    first, second = arguments
    entry = {
        name: [sys.executable, "-m", "tests.cluster_run.drive", *given]
        for name, given in arguments.items()
    }
    working = {"env_vars": {"PYTHONPATH": str(ROOT)}}
    client.submit_job(submission_id=first, entrypoint=shlex.join(entry[first]), runtime_env=working)
    submit = [sys.executable, "-m", "ray.scripts.scripts", "job", "submit", "--no-wait"]
    submit += ["--address", dashboard, "--submission-id", second]
    submit += ["--runtime-env-json", json.dumps(working), "--", *entry[second]]
    subprocess.run(submit, check=True, capture_output=True, text=True, timeout=LIMIT_S)
    end = time.monotonic() + LIMIT_S
    over = (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED)
    while not all(client.get_job_status(name) in over for name in arguments):
        assert time.monotonic() < end, {name: client.get_job_logs(name) for name in arguments}
        time.sleep(0.5)
    return {
        name: (str(client.get_job_status(name)), client.get_job_logs(name)) for name in arguments
    }


def paired(path: Path) -> bool:
    """Both blocks of the pair are there."""
    index = path.name.split("-")[0]
    return len(list(path.parent.glob(f"{index}-?.json"))) == 2
