"""One engine as one Ray Serve application: order it, wait for it, take it down."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ray import serve
from ray.exceptions import RayActorError, RaySystemError, RpcError
from ray.serve.exceptions import RayServeException
from ray.serve.schema import ApplicationStatus

from orchestrator.adapters import processes
from orchestrator.adapters.node_work import NodeWork
from orchestrator.errors import DeploymentError, DevicesLost, Interrupted, ModelUnavailable
from orchestrator.records import FailureClass
from orchestrator.serving.engine_log import EngineState
from orchestrator.serving.failure import classify
from orchestrator.serving.served_engine import ServedEngine

Build = Callable[[Mapping[str, Any]], serve.Application]
"""From the fields of `ServedEngine` to an application: `orchestrator.serving.app.build`."""

POLL_S = 0.2
STATUS_EVERY_S = 2.0
"""Asking Serve's controller costs it, and us, a good part of a core when done five times a second;
while engines start, that is time taken from them. What the engine writes is looked at meanwhile."""
STOP_GRACE_S = 20.0
SEARCHED_CHARACTERS = 500_000
"""Of an ended engine's log, for the cause."""

FAILED = (ApplicationStatus.DEPLOY_FAILED, ApplicationStatus.UNHEALTHY)

_NO_CONTROLLER = (RayServeException, RayActorError, RaySystemError, RpcError)
"""What Serve's calls raise where its controller, or the whole cluster, is gone: then no application
runs any more. Anything else is a defect, or a controller that is there and cannot answer."""

_SERVE = threading.RLock()
"""Serve's client is used by one thread at a time; its calls here return at once."""


def order(build: Build, served: ServedEngine, name: str, route_prefix: str | None) -> None:
    """Asks Serve for the application and returns at once."""
    order_application(lambda: build(served.model_dump(mode="json")), name, route_prefix)


def order_application(
    make: Callable[[], serve.Application], name: str, route_prefix: str | None
) -> None:
    """`order` for any application; without a route it is not reached through Serve's proxy."""
    with _SERVE:
        # Building too: it registers a module with cloudpickle and takes it back, which two threads
        # may not do at once.
        target = serve.RunTarget(make(), name=name, route_prefix=route_prefix)
        serve.run_many(
            [target],
            wait_for_ingress_deployment_creation=False,
            wait_for_applications_running=False,
        )


def wait_ready(
    name: str, node: NodeWork, log_path: Path, timeout_s: float, cancelled: threading.Event
) -> None:
    """Blocks until the application answers. Raises: DeploymentError, Interrupted"""
    deadline = time.monotonic() + timeout_s
    ask_at = time.monotonic() + STATUS_EVERY_S
    while True:
        state = node.state(log_path)
        if state is not None and state.phase == "failed":
            raise _failed(state, node, log_path)
        ready = state is not None and state.phase == "ready"
        seen, status = None, None
        if ready or time.monotonic() >= ask_at:
            ask_at = time.monotonic() + STATUS_EVERY_S
            with _SERVE:
                seen = serve.status().applications.get(name)
            status = seen.status if seen is not None else None
        if status == ApplicationStatus.RUNNING:
            return
        if status in FAILED:
            raise _failed(node.state(log_path), node, log_path, _messages(seen))
        if time.monotonic() >= deadline:
            phase = state.phase if state else "waiting for a place to run"
            raise DeploymentError(
                FailureClass.START_TIMEOUT.value,
                f"{name} did not answer within {timeout_s:g} s; it was {phase}",
                node.log_tail(log_path),
                str(log_path),
            )
        if cancelled.wait(POLL_S):
            raise Interrupted(f"the start of {name} was cancelled")


def _failed(
    state: EngineState | None, node: NodeWork, log_path: Path, message: str = ""
) -> DeploymentError:
    tail = node.log_tail(log_path) or message
    if state is not None and state.failure and state.cause:
        return DeploymentError(state.failure, state.cause, tail, str(log_path))
    found = classify(tail)
    return DeploymentError(found.failure.value, found.cause, tail, str(log_path))


def autopsy(
    name: str, node: NodeWork, running: frozenset[processes.ProcessId], log_path: Path
) -> DeploymentError:
    """What became of an engine that does not answer any more. Raises: DevicesLost"""
    tail = node.log_tail(log_path)
    alive = node.alive(running)
    if running and len(alive) == len(running):
        cause = f"{name} runs (processes {alive}) but does not answer"
        return DeploymentError(FailureClass.UNRESPONSIVE.value, cause, tail, str(log_path))
    # Every request that was cut off may have left a long trace after the cause.
    found = classify(node.log_tail(log_path, SEARCHED_CHARACTERS))
    if found.failure is FailureClass.OUT_OF_MEMORY:
        return DeploymentError(found.failure.value, found.cause, tail, str(log_path))
    gone = sorted(one.pid for one in running if one.pid not in alive)
    cause = f"processes {gone} of {name} ended"
    return DeploymentError(FailureClass.CRASHED.value, cause, tail, str(log_path))


def _messages(seen: Any) -> str:
    return "\n".join([seen.message, *(one.message for one in seen.deployments.values())])


def explained(error: BaseException, node: NodeWork, log_path: Path) -> BaseException:
    """A start's error as one of ours; what was raised on purpose, or by Ctrl-C, stays."""
    ours = isinstance(error, DeploymentError | ModelUnavailable | Interrupted)
    if ours or not isinstance(error, Exception):
        return error
    return DeploymentError(
        FailureClass.START_FAILED.value,
        f"{type(error).__name__}: {error}",
        node.log_tail(log_path),
        str(log_path),
    )


def known_processes(node: NodeWork, log_path: Path, host: str) -> frozenset[processes.ProcessId]:
    """Processes a start has named so far, if they are on that host."""
    state = node.state(log_path)
    if state is None or state.host != host:
        return frozenset()
    return node.identify(state.pids)


def take_down(name: str, node: NodeWork, running: frozenset[processes.ProcessId]) -> None:
    """Deletes the application; returns when its processes and their device memory are gone.

    A node that is gone has taken them along.
    """
    with _SERVE, contextlib.suppress(*_NO_CONTROLLER):
        serve.delete(name, _blocking=False)
    with contextlib.suppress(DevicesLost):
        node.wait_gone(running, STOP_GRACE_S)
    until = time.monotonic() + STOP_GRACE_S
    while time.monotonic() < until and name in applications():
        time.sleep(POLL_S)


def applications() -> list[str]:
    """Names of all applications that Serve has; empty where it does not run."""
    with _SERVE, contextlib.suppress(*_NO_CONTROLLER):
        return list(serve.status().applications)
    return []
