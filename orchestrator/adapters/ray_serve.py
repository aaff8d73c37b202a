"""Engines as Ray Serve applications: the deployer that real sweeps use."""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray import serve

from orchestrator.adapters import processes
from orchestrator.adapters.ray_local import RayConnection, ServeAddress, ensure_ray, ensure_serve
from orchestrator.adapters.serve_application import (
    answers,
    autopsy,
    explained,
    get_json,
    known_processes,
    order,
    take_down,
    wait_ready,
)
from orchestrator.errors import DeploymentError
from orchestrator.models.resolve import ResolvedModel, resolve
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Endpoint
from orchestrator.records import EngineFacts
from orchestrator.serving import app, template
from orchestrator.serving.engine_log import state_path
from orchestrator.serving.environment import allowed_cpus, compute_cpus, engine_environment
from orchestrator.serving.served_engine import ServedEngine, from_deployment, short_name


@dataclass(frozen=True)
class _Running:
    """What the deployer remembers of one application."""

    endpoint: Endpoint
    facts: EngineFacts
    processes: frozenset[processes.ProcessId]


class RayServeDeployer:
    """Starts and stops engines as Serve applications; several threads may use it at once.

    `log_folder` gets one log per engine start. With `address` None a local Ray is started, and
    ended by `close`; a connection that exists already is used and left as it is.
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
        self._cancelled = threading.Event()

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
        speculation = deployment.speculation
        named_draft = speculation.draft if speculation else None
        draft = resolve(named_draft, offline=self._offline) if named_draft else None
        served = from_deployment(
            deployment,
            target_path=target.path_or_id,
            draft_path=draft.path_or_id if draft else None,
            model_name=short_name(target.name),
        )
        return self.start_served(served, name=name, timeout_s=timeout_s, key=deployment.key)

    def start_served(
        self,
        served: ServedEngine,
        *,
        name: str,
        timeout_s: float,
        key: str = "",
        route_prefix: str | None = None,
    ) -> Endpoint:
        """`start` for the arguments of `orchestrator.serving.app:build`."""
        target = resolve(served.target, offline=self._offline)
        address = self.open()
        ordered = time.monotonic()
        log_path = self._fresh_log(name)
        route = route_prefix or f"/{name}"
        base_url = address.url + route.rstrip("/")
        try:
            order(self._placed(served, log_path), name, route)
            wait_ready(name, log_path, timeout_s, self._cancelled)
            said = get_json(base_url + app.FACTS_ROUTE)
        except BaseException as error:
            take_down(name, known_processes(log_path))
            raise explained(error, log_path) from error
        took = time.monotonic() - ordered
        pids = tuple(said["pids"]) if said["host"] == socket.gethostname() else ()
        stages_path = None if said["stages_unavailable"] else app.STAGES_ROUTE
        endpoint = Endpoint(name, base_url, served.model_name, pids=pids, stages_path=stages_path)
        facts = _facts(key, target, said, took, log_path)
        running = _Running(endpoint, facts, processes.identify(pids))
        with self._lock:
            self._running[name] = running
        return endpoint

    def facts(self, name: str) -> EngineFacts:
        """Raises: KeyError for a name that is not running."""
        return self._running[name].facts

    def healthy(self, name: str) -> bool:
        """Whether the same process still answers: an engine that was replaced is not healthy."""
        running = self._running.get(name)
        if running is None:
            return False
        base_url = running.endpoint.base_url
        try:
            said = get_json(base_url + app.FACTS_ROUTE, timeout_s=10)
        except (OSError, ValueError):
            return False
        same = bool(said["pids"][0] == running.facts.extra["replica_pid"])
        return same and answers(base_url + "/health")

    def autopsy(self, name: str) -> DeploymentError | None:
        """From the engine's processes and the end of its log."""
        running = self._running.get(name)
        if running is None:
            return None
        log = self._logs[name]
        return autopsy(name, running.processes, log)

    def stop(self, name: str) -> None:
        """Returns when the processes are gone and their memory is free. Unknown name: nothing."""
        with self._lock:
            running = self._running.pop(name, None)
        if running is not None:
            take_down(name, running.processes | processes.identify(running.endpoint.pids))

    def cancel(self) -> None:
        """Makes every start in progress, and every later one, raise Interrupted; at once."""
        self._cancelled.set()

    def close(self) -> None:
        """Stops every engine started here, starting ones too; ends Serve and Ray if they were
        started here."""
        self.cancel()
        names = list(self._running)
        with ThreadPoolExecutor(max(1, len(names))) as threads:
            list(threads.map(self.stop, names))
        with self._lock:
            ray_ends = self._connection is not None and self._connection.started_here
            if self._serve is not None and self._serve.started_here and not ray_ends:
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

    def _start_template(self) -> None:
        """One process that has imported vLLM, for all CPU engines of this host."""
        if not app.runs_on_cpu() or template.reachable(os.environ.get(template.VARIABLE)):
            return
        cpus = compute_cpus(allowed_cpus())
        variables = engine_environment(accelerators=False, cpus=cpus, given={})
        log = self._log_folder / "template.log"
        self._template = template.start_template(cpus, {**os.environ, **variables}, log)

    def _placed(self, served: ServedEngine, log_path: Path) -> ServedEngine:
        """The arguments with what only this host knows: the log and the template."""
        variables = {"HF_HUB_OFFLINE": "1"} if self._offline else {}
        shared = self._template.address if self._template else os.environ.get(template.VARIABLE)
        if shared:
            variables[template.VARIABLE] = shared
        return served.model_copy(
            update={
                "log_path": str(log_path),
                "environment": {**variables, **served.environment},
            }
        )

    def _fresh_log(self, name: str) -> Path:
        """A log of its own for every start: what an earlier one left is kept."""
        with self._lock:
            number = 1
            while (path := self._log_folder / f"{name}-{number}.log").exists():
                number += 1
            path.touch(mode=0o600)
            state_path(path).unlink(missing_ok=True)
            self._logs[name] = path
            return path


def _facts(
    key: str, target: ResolvedModel, said: dict[str, Any], took_s: float, log_path: Path
) -> EngineFacts:
    folder = target.local_path
    weights = [path.stat().st_size for path in folder.glob("*.safetensors")] if folder else []
    return EngineFacts(
        deployment_key=key,
        engine=said["engine"],
        engine_version=said["engine_version"],
        model=said["model"],
        start_s=took_s,
        pids=tuple(said["pids"]) if said["host"] == socket.gethostname() else (),
        kv_capacity_tokens=said["kv_capacity_tokens"],
        model_bytes=sum(weights) or None,
        extra={
            "replica_pid": said["pids"][0],
            "host": said["host"],
            "log_path": str(log_path),
            "max_model_len": said["max_model_len"],
            "max_num_seqs": said["max_num_seqs"],
            "dtype": said["dtype"],
            "model_revision": target.revision,
            "model_source": target.source,
            **said["seconds"],
        },
    )
