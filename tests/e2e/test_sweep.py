"""The main job on the real engine: killed in the middle, finished by the same command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from orchestrator.adapters.mlflow import MlflowTracker, local_tracking_uri
from orchestrator.decide.sweep_result import read_sweep
from orchestrator.models.prepare import prepare
from orchestrator.store import SweepFolder

pytestmark = [pytest.mark.engine, pytest.mark.ray]

EXPERIMENT = """\
name: real
target: smollm2-135m-instruct
engine: {dtype: float32, max_model_len: 512, enforce_eager: true, enable_prefix_caching: false}
sweep:
  speculation: [{method: ngram, speculation_length: 2, prompt_lookup_max: 4}]
  batch_size: [1]
  temperature: [0.0]
workloads:
  - {name: rewrite, prompts: bundled:rewrite, input_tokens: {max: 40, by: cut}, output_tokens: 6}
measure: {pairs: {min: 2, max: 2}}
placement: {strategy: shared, gpus_per_replica: 0}
"""
LIMIT_S = 420


def start(file: Path, results: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "sweep", str(file), "--results", str(results)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def blocks(results: Path) -> dict[Path, int]:
    found = (results / "real").glob("*/blocks/0*.json")
    return {path: path.stat().st_mtime_ns for path in found}


def of_this_sweep(results: Path) -> list[psutil.Process]:
    """Engines, replicas and the pool write logs under the results: their open files say so."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(results) in opened.path for opened in process.open_files()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def wait_for(condition: object, what: str) -> None:
    assert callable(condition)
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, f"no sign of {what} within {LIMIT_S} s"
        time.sleep(0.2)


def test_killed_in_the_middle_the_same_command_finishes_and_leaves_nothing(tmp_path: Path) -> None:
    prepare("smollm2-135m-instruct")
    file, results = tmp_path / "real.yaml", tmp_path / "results"
    file.write_text(EXPERIMENT)

    first = start(file, results)
    wait_for(lambda: len(blocks(results)) >= 2, "a first pair")
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    kept = blocks(results)
    wait_for(lambda: not of_this_sweep(results), "the killed sweep's processes ending")

    second = start(file, results)
    said, _ = second.communicate(timeout=LIMIT_S)
    assert second.returncode in (0, 4, 5), said  # 4 and 5: a busy machine spoils blocks, rightly
    now = blocks(results)
    assert kept.items() <= now.items()  # nothing was measured twice
    result = read_sweep(SweepFolder(results / "real"))
    assert [trial.trial.kind for trial in result.every[:2]] == ["aa_control", "comparison"]
    for trial in result.every:
        assert trial.outcome is not None, said
        assert len(trial.pairs) == 2, trial.outcome
        facts = trial.engines["speculative"]
        assert (facts.engine, facts.simulated) == ("vllm", False)
        for pair in trial.pairs:
            assert pair.baseline.output_tokens == pair.speculative.output_tokens == 6
            assert pair.baseline.mean("ttft_s")
    assert "verdict" in said
    assert not of_this_sweep(results)

    tracker = MlflowTracker(local_tracking_uri(results), experiment="real", results=results)
    client = tracker._client
    runs = client.search_runs([tracker._experiment_id], "tags.`orchestrator.trial_id` != ''")
    assert len(runs) == len(result.every)
    method = {run.data.params["method"]: run for run in runs}
    assert {"none", "ngram"} <= method.keys()
    assert method["ngram"].data.params["speculation_length"] == "2"
    artifacts = {item.path for item in client.list_artifacts(runs[0].info.run_id, "trial")}
    assert {"trial/trial.json", "trial/engines.json", "trial/blocks"} <= artifacts
    assert json.loads((results / "real" / "sweep.json").read_text())["environment"]["packages"]

    third = start(file, results)
    said, _ = third.communicate(timeout=LIMIT_S)
    assert "reporting" in said
    assert blocks(results) == now
