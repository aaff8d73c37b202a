"""One engine as one Ray Serve application: order it, wait for it, take it down."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from ray import serve
from ray.serve.schema import ApplicationStatus

from orchestrator.adapters import processes
from orchestrator.adapters.device_memory import wait_device_memory_freed
from orchestrator.errors import DeploymentError, Interrupted, ModelUnavailable
from orchestrator.records import FailureClass
from orchestrator.serving import app
from orchestrator.serving.engine_log import EngineState, log_tail, read_state
from orchestrator.serving.failure import classify
from orchestrator.serving.served_engine import ServedEngine

POLL_S = 0.2
STATUS_EVERY_S = 2.0
"""Asking Serve's controller costs it, and us, a good part of a core when done five times a second;
while engines start, that is time taken from them. What the engine writes is looked at meanwhile."""
STOP_GRACE_S = 20.0
SEARCHED_CHARACTERS = 500_000
"""Of an ended engine's log, for the cause."""

_SERVE = threading.RLock()
"""Serve's client is used by one thread at a time; its calls here return at once."""


def order(served: ServedEngine, name: str, route_prefix: str) -> None:
    """Asks Serve for the application and returns at once."""
    with _SERVE:
        # Building too: it registers a module with cloudpickle and takes it back, which two threads
        # may not do at once.
        target = serve.RunTarget(
            app.build(served.model_dump(mode="json")), name=name, route_prefix=route_prefix
        )
        serve.run_many(
            [target],
            wait_for_ingress_deployment_creation=False,
            wait_for_applications_running=False,
        )


def wait_ready(name: str, log_path: Path, timeout_s: float, cancelled: threading.Event) -> None:
    """Blocks until the application answers. Raises: DeploymentError, Interrupted"""
    deadline = time.monotonic() + timeout_s
    ask_at = time.monotonic() + STATUS_EVERY_S
    while True:
        state = read_state(log_path)
        if state is not None and state.phase == "failed":
            raise _failed(state, log_path)
        ready = state is not None and state.phase == "ready"
        seen, status = None, None
        if ready or time.monotonic() >= ask_at:
            ask_at = time.monotonic() + STATUS_EVERY_S
            with _SERVE:
                seen = serve.status().applications.get(name)
            status = seen.status if seen is not None else None
        if status == ApplicationStatus.RUNNING:
            return
        if status in (ApplicationStatus.DEPLOY_FAILED, ApplicationStatus.UNHEALTHY):
            raise _failed(read_state(log_path), log_path, _messages(seen))
        if time.monotonic() >= deadline:
            phase = state.phase if state else "waiting for a place to run"
            raise DeploymentError(
                FailureClass.START_TIMEOUT.value,
                f"{name} did not answer within {timeout_s:g} s; it was {phase}",
                log_tail(log_path),
                str(log_path),
            )
        if cancelled.wait(POLL_S):
            raise Interrupted(f"the start of {name} was cancelled")


def _failed(state: EngineState | None, log_path: Path, message: str = "") -> DeploymentError:
    tail = log_tail(log_path) or message
    if state is not None and state.failure and state.cause:
        return DeploymentError(state.failure, state.cause, tail, str(log_path))
    found = classify(tail)
    return DeploymentError(found.failure.value, found.cause, tail, str(log_path))


def autopsy(name: str, running: frozenset[processes.ProcessId], log_path: Path) -> DeploymentError:
    """What became of an engine that does not answer any more."""
    tail = log_tail(log_path)
    alive = processes.alive(running)
    if running and len(alive) == len(running):
        cause = f"{name} runs (processes {[one.pid for one in alive]}) but does not answer"
        return DeploymentError(FailureClass.UNRESPONSIVE.value, cause, tail, str(log_path))
    # Every request that was cut off may have left a long trace after the cause.
    found = classify(log_tail(log_path, characters=SEARCHED_CHARACTERS))
    if found.failure is FailureClass.OUT_OF_MEMORY:
        return DeploymentError(found.failure.value, found.cause, tail, str(log_path))
    gone = sorted(one.pid for one in running if one.pid not in {each.pid for each in alive})
    cause = f"processes {gone} of {name} ended"
    return DeploymentError(FailureClass.CRASHED.value, cause, tail, str(log_path))


def _messages(seen: Any) -> str:
    return "\n".join([seen.message, *(one.message for one in seen.deployments.values())])


def explained(error: BaseException, log_path: Path) -> BaseException:
    """A start's error as one of ours; what was raised on purpose, or by Ctrl-C, stays."""
    ours = isinstance(error, DeploymentError | ModelUnavailable | Interrupted)
    if ours or not isinstance(error, Exception):
        return error
    return DeploymentError(
        FailureClass.START_FAILED.value,
        f"{type(error).__name__}: {error}",
        log_tail(log_path),
        str(log_path),
    )


def known_processes(log_path: Path) -> frozenset[processes.ProcessId]:
    """Processes a start has named so far, if they are on this host."""
    state = read_state(log_path)
    if state is None or state.host != socket.gethostname():
        return frozenset()
    return processes.identify(state.pids)


def take_down(name: str, running: frozenset[processes.ProcessId]) -> None:
    """Deletes the application; returns when its processes and their device memory are gone."""
    with _SERVE, contextlib.suppress(Exception):  # a cluster that is gone took it along
        serve.delete(name, _blocking=False)
    processes.wait_gone(running, grace_s=STOP_GRACE_S)
    until = time.monotonic() + STOP_GRACE_S
    while time.monotonic() < until and _listed(name):
        time.sleep(POLL_S)
    wait_device_memory_freed({one.pid for one in running})


def _listed(name: str) -> bool:
    with _SERVE:
        try:
            return name in serve.status().applications
        except Exception:  # noqa: BLE001 - no controller left: nothing runs any more
            return False


def get_json(url: str, *, timeout_s: float = 30.0) -> dict[str, Any]:
    """Raises: OSError, ValueError"""
    with urllib.request.urlopen(url, timeout=timeout_s) as answer:
        content: dict[str, Any] = json.load(answer)
        return content


def answers(url: str, *, timeout_s: float = 10.0) -> bool:
    """Whether a GET there is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
