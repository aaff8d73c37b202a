"""Experiments on stand-in engines, and a look at what a cluster still holds."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from orchestrator.cli import running
from orchestrator.cli.machine_room import join
from orchestrator.cli.preparation import prepare
from orchestrator.cli.sweep import manifest_of
from orchestrator.ports import OnProgress, Tracker
from orchestrator.store import SweepFolder
from orchestrator.sweep import Finished, Sweep, run_sweep
from tests.survival import stand_in

ROOT = Path(__file__).resolve().parents[2]

EXPERIMENT = """\
name: {name}
target: {model}
engine: {{max_model_len: 1024, planted: {planted}}}
sweep:
  speculation: [{{method: ngram, speculation_length: {lengths}, prompt_lookup_max: 4}}]
  batch_size: [1]
  temperature: [0.0]
workloads:
  - {{name: chat, prompts: bundled:chat, output_tokens: 24, allow_reuse: true}}
measure:
  pairs: {{min: 2, max: {pairs}}}
  timeouts: {{first_token_s: 3, stall_s: 3, total_s: 20, start_s: {start_s}}}
placement: {{strategy: shared, gpus_per_replica: 0}}
"""


def write_experiment(
    folder: Path,
    name: str,
    planted: Mapping[int, str],
    *,
    lengths: list[int] | None = None,
    pairs: int = 2,
    start_s: float = 300,
) -> Path:
    """One cell for every speculation length; `planted` says what becomes of its engine."""
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text('{"model_type": "llama", "vocab_size": 100}')
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    plant(folder, planted)
    path = folder / f"{name}.yaml"
    path.write_text(
        EXPERIMENT.format(
            name=name,
            model=model,
            planted=folder / "planted.json",
            lengths=lengths or list(planted),
            pairs=pairs,
            start_s=start_s,
        )
    )
    return path


def plant(folder: Path, planted: Mapping[int, str]) -> None:
    (folder / "planted.json").write_text(json.dumps(planted))


def run(
    file: Path,
    results: Path,
    tracker: Callable[[], Tracker],
    on_progress: OnProgress,
    *,
    address: str | None = None,
    retry_failed: bool = False,
) -> Finished:
    """The sweep in this process, as the command line would run it."""
    prepared = prepare(file, offline=True)
    folder = SweepFolder((results / prepared.experiment.name).resolve())
    engines = running.real_engines(prepared, folder, join(address) if address else None)
    try:
        return run_sweep(
            Sweep(
                jobs=prepared.jobs(),
                further=prepared.further,
                folder=folder,
                manifest=manifest_of(prepared, folder),
                executor=engines,
                open_tracker=tracker,
                on_progress=on_progress,
                retry_failed=retry_failed,
            )
        )
    finally:
        engines.close()


def use_stand_ins() -> None:
    """From here on this process's sweeps run on stand-in engines."""
    running.ENGINE_APP = stand_in.build


def start(file: Path, results: Path, *options: str) -> subprocess.Popen[str]:
    """The command line in a process of its own, on stand-in engines."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.survival.room",
            "sweep",
            file,
            "--results",
            results,
            *options,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def blocks(results: Path) -> dict[Path, int]:
    """Every measured block and when it was written."""
    return {path: path.stat().st_mtime_ns for path in results.glob("*/*/blocks/0*.json")}


def with_open_files_under(folder: Path) -> list[psutil.Process]:
    """Engines and replicas write logs under the results."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if any(str(folder) in opened.path for opened in process.open_files()):
                found.append(process)
    return found


def wait_for(condition: Callable[[], object], what: str, limit_s: float = 120) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"no sign of {what} within {limit_s:g} s"
        time.sleep(0.1)


if __name__ == "__main__":
    from orchestrator.cli import main

    use_stand_ins()
    sys.exit(main())
