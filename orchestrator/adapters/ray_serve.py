"""Engines as Ray Serve applications: the deployer that real sweeps use."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ray import serve
from ray.serve.schema import ApplicationStatus

from orchestrator.adapters import processes
from orchestrator.adapters.device_memory import wait_device_memory_freed
from orchestrator.adapters.ray_local import RayConnection, ServeAddress, ensure_ray, ensure_serve
from orchestrator.errors import DeploymentError, ModelUnavailable
from orchestrator.models.resolve import ResolvedModel, resolve
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Endpoint
from orchestrator.records import EngineFacts, FailureClass
from orchestrator.serving import app, template
from orchestrator.serving.engine_log import EngineState, log_tail, read_state, state_path
from orchestrator.serving.environment import allowed_cpus, compute_cpus, engine_environment
from orchestrator.serving.failure import classify
from orchestrator.serving.served_engine import ServedEngine, from_deployment, short_name

POLL_S = 0.2
STOP_GRACE_S = 20.0


@dataclass(frozen=True)
class _Running:
    """What the deployer remembers of one application."""

    deployment: Deployment
    endpoint: Endpoint
    facts: EngineFacts
    processes: frozenset[processes.ProcessId]
    log_path: Path


class RayServeDeployer:
    """Starts and stops engines as Serve applications; several threads may use it at once.

    `log_folder` gets one log per engine. With `address` None a local Ray is started and ended with
    `close`; an existing connection is used as it is.
    """

    def __init__(
        self,
        log_folder: Path,
        *,
        http_port: int = 0,
        address: str | None = None,
        offline: bool = False,
    ) -> None:
        self._log_folder = log_folder.resolve()
        self._log_folder.mkdir(parents=True, exist_ok=True)
        self._http_port, self._address, self._offline = http_port, address, offline
        self._lock = threading.RLock()
        self._connection: RayConnection | None = None
        self._serve: ServeAddress | None = None
        self._template: template.Template | None = None
        self._running: dict[str, _Running] = {}
        self._logs: dict[str, Path] = {}

    def open(self) -> ServeAddress:
        """Brings Ray and Serve up, if they are not. `start` does it by itself."""
        with self._lock:
            if self._serve is None:
                self._start_template()
                self._connection = ensure_ray(self._address)
                self._serve = ensure_serve(self._http_port)
            return self._serve

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        """Blocks until the engine answers.

        Raises: ModelUnavailable before anything is started; DeploymentError with class and cause.
        """
        target = resolve(deployment.target, offline=self._offline)
        draft = self._draft(deployment)
        address = self.open()
        ordered = time.monotonic()
        log_path = self._log_path(name)
        served = self._served(deployment, target, draft, log_path)
        try:
            self._run(served, name)
            self._wait_ready(name, log_path, ordered + timeout_s, timeout_s)
            said = _get_json(f"{address.url}/{name}{app.FACTS_ROUTE}")
        except BaseException as error:
            self._take_down(name, self._known_processes(log_path))
            raise self._explained(error, log_path) from error
        took = time.monotonic() - ordered
        local = said["host"] == socket.gethostname()
        pids = tuple(said["pids"]) if local else ()
        endpoint = Endpoint(name, f"{address.url}/{name}", served.model_name, pids=pids)
        facts = _facts(deployment, target, said, took, pids)
        with self._lock:
            self._running[name] = _Running(
                deployment, endpoint, facts, processes.identify(pids), log_path
            )
        return endpoint

    def facts(self, name: str) -> EngineFacts:
        """Raises: KeyError for a name that is not running."""
        return self._running[name].facts

    def healthy(self, name: str) -> bool:
        """Whether the same processes still answer: a replaced engine is not healthy."""
        running = self._running.get(name)
        if running is None:
            return False
        try:
            said = _get_json(running.endpoint.base_url + app.FACTS_ROUTE, timeout_s=10)
            with urllib.request.urlopen(
                running.endpoint.base_url + "/health", timeout=10
            ) as answer:
                answers = answer.status == 200
        except (OSError, ValueError):
            return False
        return answers and bool(said["pids"][0] == running.facts.extra["replica_pid"])

    def stop(self, name: str) -> None:
        """Returns when the processes are gone and their memory is free. Unknown name: nothing."""
        with self._lock:
            running = self._running.pop(name, None)
        if running is not None:
            self._take_down(name, running.processes | processes.identify(running.endpoint.pids))

    def close(self) -> None:
        """Stops every engine started here; ends Serve and Ray if they were started here."""
        for name in list(self._running):
            self.stop(name)
        with self._lock:
            if self._serve is not None and self._serve.started_here:
                serve.shutdown()
            self._serve = None
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if self._template is not None:
                self._template.stop()
                self._template = None

    def log_path(self, name: str) -> Path | None:
        """The log of the last engine started under that name."""
        return self._logs.get(name)

    # --- starting

    def _start_template(self) -> None:
        """One process that has imported vLLM, for all CPU engines of this host."""
        if not app.runs_on_cpu() or template.reachable(os.environ.get(template.VARIABLE)):
            return
        cpus = compute_cpus(allowed_cpus())
        variables = engine_environment(accelerators=False, cpus=cpus, given={})
        log = self._log_folder / "template.log"
        self._template = template.start_template(cpus, {**os.environ, **variables}, log)

    def _draft(self, deployment: Deployment) -> ResolvedModel | None:
        speculation = deployment.speculation
        if speculation is None or speculation.draft is None:
            return None
        return resolve(speculation.draft, offline=self._offline)

    def _served(
        self,
        deployment: Deployment,
        target: ResolvedModel,
        draft: ResolvedModel | None,
        log_path: Path,
    ) -> ServedEngine:
        served = from_deployment(
            deployment,
            target_path=target.path_or_id,
            draft_path=draft.path_or_id if draft else None,
            model_name=short_name(target.name),
        )
        variables = {"HF_HUB_OFFLINE": "1"} if self._offline else {}
        shared = self._template.address if self._template else os.environ.get(template.VARIABLE)
        if shared:
            variables[template.VARIABLE] = shared
        return served.model_copy(update={"log_path": str(log_path), "environment": variables})

    def _log_path(self, name: str) -> Path:
        """A fresh log for every start: the log of an earlier one is kept."""
        with self._lock:
            number = 1
            while (path := self._log_folder / f"{name}-{number}.log").exists():
                number += 1
            path.touch(mode=0o600)
            state_path(path).unlink(missing_ok=True)
            self._logs[name] = path
            return path

    def _run(self, served: ServedEngine, name: str) -> None:
        target = serve.RunTarget(
            app.build(served.model_dump(mode="json")), name=name, route_prefix=f"/{name}"
        )
        with self._lock:
            serve.run_many(
                [target],
                wait_for_ingress_deployment_creation=False,
                wait_for_applications_running=False,
            )

    def _wait_ready(self, name: str, log_path: Path, deadline: float, timeout_s: float) -> None:
        while True:
            state = read_state(log_path)
            if state is not None and state.phase == "failed":
                raise self._failed(state, log_path)
            seen = serve.status().applications.get(name)
            if seen is not None and seen.status == ApplicationStatus.RUNNING:
                return
            if seen is not None and seen.status in (
                ApplicationStatus.DEPLOY_FAILED,
                ApplicationStatus.UNHEALTHY,
            ):
                raise self._failed(read_state(log_path), log_path, _messages(seen))
            if time.monotonic() >= deadline:
                phase = state.phase if state else "waiting for a place to run"
                raise DeploymentError(
                    FailureClass.START_TIMEOUT.value,
                    f"{name} did not answer within {timeout_s:g} s; it was {phase}",
                    log_tail(log_path),
                    str(log_path),
                )
            time.sleep(POLL_S)

    def _failed(
        self, state: EngineState | None, log_path: Path, message: str = ""
    ) -> DeploymentError:
        tail = log_tail(log_path) or message
        if state is not None and state.failure and state.cause:
            return DeploymentError(state.failure, state.cause, tail, str(log_path))
        found = classify(tail)
        return DeploymentError(found.failure.value, found.cause, tail, str(log_path))

    def _explained(self, error: BaseException, log_path: Path) -> BaseException:
        if isinstance(error, DeploymentError | ModelUnavailable) or not isinstance(
            error, Exception
        ):
            return error
        return DeploymentError(
            FailureClass.START_FAILED.value,
            f"{type(error).__name__}: {error}",
            log_tail(log_path),
            str(log_path),
        )

    # --- stopping

    def _known_processes(self, log_path: Path) -> frozenset[processes.ProcessId]:
        state = read_state(log_path)
        if state is None or state.host != socket.gethostname():
            return frozenset()
        return processes.identify(state.pids)

    def _take_down(self, name: str, running: frozenset[processes.ProcessId]) -> None:
        with self._lock, contextlib.suppress(Exception):  # a cluster that is gone took it along
            serve.delete(name, _blocking=False)
        processes.wait_gone(running, grace_s=STOP_GRACE_S)
        until = time.monotonic() + STOP_GRACE_S
        while time.monotonic() < until:
            try:
                if name not in serve.status().applications:
                    break
            except Exception:  # noqa: BLE001 - no controller left: nothing runs any more
                break
            time.sleep(POLL_S)
        wait_device_memory_freed({one.pid for one in running})


def _messages(seen: Any) -> str:
    return "\n".join([seen.message, *(one.message for one in seen.deployments.values())])


def _get_json(url: str, *, timeout_s: float = 30.0) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=timeout_s) as answer:
        content: dict[str, Any] = json.load(answer)
        return content


def _facts(
    deployment: Deployment,
    target: ResolvedModel,
    said: dict[str, Any],
    took_s: float,
    pids: tuple[int, ...],
) -> EngineFacts:
    folder = target.local_path
    weights = [path.stat().st_size for path in folder.glob("*.safetensors")] if folder else []
    extra = {
        "replica_pid": said["pids"][0],
        "host": said["host"],
        "max_model_len": said["max_model_len"],
        "max_num_seqs": said["max_num_seqs"],
        "dtype": said["dtype"],
        "model_revision": target.revision,
        "model_source": target.source,
        **said["seconds"],
    }
    facts = EngineFacts(
        deployment_key=deployment.key,
        engine=said["engine"],
        engine_version=said["engine_version"],
        model=said["model"],
        start_s=took_s,
        pids=pids,
        kv_capacity_tokens=said["kv_capacity_tokens"],
        model_bytes=sum(weights) or None,
    )
    return replace(facts, extra=extra)
