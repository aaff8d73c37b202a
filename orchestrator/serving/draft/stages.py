"""Runs the stages of a draft's training, each in a process of its own, and passes progress on."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.errors import MissingExtra, ModelUnavailable
from orchestrator.serving.draft.said import PREFIX
from orchestrator.serving.environment import (
    allowed_cpus,
    engine_environment,
    openmp_environment,
    preloads,
)

OnStage = Callable[[Mapping[str, Any]], None]
"""Given what a stage says of its progress: `stage`, and counts such as `step` and `of`."""
LOG = "training.log"
_ENDS_S = 20.0


def run_stage(stage: str, folder: Path, on_stage: OnStage, *, accelerators: bool) -> None:
    """One stage, until it ends; what it writes besides its progress goes to `training.log`.

    Raises: MissingExtra, ModelUnavailable with the end of the log; KeyboardInterrupt when this
    process is interrupted, after the stage has ended.
    """
    for module in ("torch", "transformers", "safetensors", "vllm"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(module, "cpu", "training a draft")
    command = [sys.executable, "-m", "orchestrator.serving.draft", stage, str(folder)]
    environment = stage_environment(accelerators=accelerators)
    run_command(command, folder / LOG, on_stage, environment=environment)


def stage_environment(*, accelerators: bool) -> dict[str, str]:
    """Nothing else computes meanwhile, so a CPU engine has every CPU of this process."""
    cpus = allowed_cpus()
    variables = engine_environment(
        accelerators=accelerators, cpus=cpus, given={"HF_HUB_OFFLINE": "1"}
    )
    if not accelerators:
        variables.update(openmp_environment(cpus))
        variables["LD_PRELOAD"] = preloads()
    return variables


def run_command(
    command: Sequence[str], log: Path, on_stage: OnStage, *, environment: Mapping[str, str]
) -> None:
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    variables = {**os.environ, **environment, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    with log.open("a", encoding="utf-8") as written:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
            env=variables,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith(PREFIX):
                    on_stage(json.loads(line.removeprefix(PREFIX)))
                else:
                    written.write(line)
                    written.flush()
            status = process.wait()
        finally:
            end(process)
    if status != 0:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-12:])
        raise ModelUnavailable(
            f"{' '.join(command[2:4])} ended with status {status}; the whole log is in {log}, "
            f"what is finished is kept and the same command goes on from there; its end:\n{tail}"
        )


def end(process: subprocess.Popen[str]) -> None:
    """The stage and whatever it started: asked first, then made to."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            continue
