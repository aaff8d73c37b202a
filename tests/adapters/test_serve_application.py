"""What became of an engine, from its processes and its log."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ray.exceptions import ActorDiedError, RaySystemError
from ray.serve.exceptions import RayServeException

from orchestrator.adapters import processes, serve_application
from orchestrator.adapters.node_work import NodeWork
from orchestrator.adapters.serve_application import applications, autopsy, take_down
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


class NoServe:
    """`ray.serve` whose every call ends in one error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def status(self) -> None:
        raise self._error

    def delete(self, name: str, _blocking: bool) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error", [RayServeException("no controller"), ActorDiedError(), RaySystemError("no GCS")]
)
def test_a_controller_that_is_gone_has_taken_its_applications_along(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(serve_application, "serve", NoServe(error))
    take_down("ngram", NodeWork(), frozenset())
    assert applications() == []


@pytest.mark.parametrize("error", [ValueError("a defect"), TimeoutError("busy")])
def test_any_other_error_is_not_taken_for_that(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(serve_application, "serve", NoServe(error))
    with pytest.raises(type(error)):
        take_down("ngram", NodeWork(), frozenset())
    with pytest.raises(type(error)):
        applications()
