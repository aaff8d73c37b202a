"""What became of an engine, from its processes and its log."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.adapters import processes
from orchestrator.adapters.node_work import NodeWork
from orchestrator.adapters.serve_application import autopsy
from orchestrator.records import FailureClass

TRACES = "RuntimeError: the stream was cut off\n" * 1000


@pytest.mark.parametrize(
    ("log", "failure"),
    [
        (f"Traceback\nMemoryError\n{TRACES}", FailureClass.OUT_OF_MEMORY),
        (f"torch.OutOfMemoryError: CUDA out of memory.\n{TRACES}", FailureClass.OUT_OF_MEMORY),
        (TRACES, FailureClass.CRASHED),
        ("", FailureClass.CRASHED),
    ],
)
def test_an_ended_engine_is_judged_by_its_log(
    tmp_path: Path, log: str, failure: FailureClass
) -> None:
    path = tmp_path / "engine.log"
    path.write_text(log)
    process = subprocess.Popen(["sleep", "60"])
    running = processes.identify([process.pid])
    process.kill()
    process.wait()
    found = autopsy("ngram", NodeWork(), running, path)
    assert found.failure == failure
    assert found.log_tail == log[-8000:]
    if failure is FailureClass.CRASHED:
        assert f"processes [{process.pid}] of ngram ended" in found.cause


def test_an_engine_that_is_there_does_not_answer(tmp_path: Path) -> None:
    found = autopsy("ngram", NodeWork(), processes.identify([os.getpid()]), tmp_path / "none.log")
    assert found.failure == FailureClass.UNRESPONSIVE
    assert str(os.getpid()) in found.cause
