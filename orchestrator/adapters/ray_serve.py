"""Engines as Ray Serve applications: the deployer that real sweeps use."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray import serve

from orchestrator.adapters import processes
from orchestrator.adapters.node_work import NodeWork
from orchestrator.adapters.ray_cluster.reserve import EnginePlace
from orchestrator.adapters.ray_local import RayConnection, ServeAddress, ensure_ray, ensure_serve
from orchestrator.adapters.serve_application import (
    Build,
    autopsy,
    explained,
    known_processes,
    order,
    take_down,
    wait_ready,
)
from orchestrator.errors import DeploymentError, DevicesLost
from orchestrator.models.resolve import ResolvedModel, resolve
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Endpoint
from orchestrator.records import EngineFacts, FailureClass
from orchestrator.serving import app, template
from orchestrator.serving.served_engine import ServedEngine, from_deployment, short_name


@dataclass(frozen=True)
class _Running:
    """What the deployer remembers of one application."""

    endpoint: Endpoint
    facts: EngineFacts
    processes: frozenset[processes.ProcessId]


_PROXY_S = 60.0
"""Serve starts a node's proxy when the first replica is there: it may come a moment later."""
_SLEEP_S = 120.0
_NODE_ENDS_S = 6.0
"""After a raylet's death its workers notice and end; measured: 1 to 3 s on a busy machine."""


@dataclass(frozen=True)
class OnNode:
    """The place of this deployer's engines, and how that node is reached."""

    place: EnginePlace
    work: NodeWork
    is_head: bool
    measured_from: str | None = None
    """As `Endpoint.node`: the load is sent, and the address asked, from there."""
    asked_from: NodeWork | None = None
    """Where addresses can be reached, if that is not the engine's node."""


class RayServeDeployer:
    """Starts and stops engines as Serve applications; several threads may use it at once.

    `log_folder` gets one log per engine start. With `address` None a local Ray is started, and
    ended by `close`; a connection that exists already is used and left as it is. With `on` engines
    run there; otherwise wherever Ray puts them. `prefix` begins the applications' names on a
    cluster that others use too.
    """

    def __init__(
        self,
        log_folder: Path,
        *,
        http_port: int = 0,
        address: str | None = None,
        offline: bool = False,
        on: OnNode | None = None,
        prefix: str = "",
        build: Build = app.build,
    ) -> None:
        self._log_folder = log_folder.resolve()
        self._on, self._prefix, self._build = on, prefix, build
        self._work = on.work if on else NodeWork()
        self._http_port, self._address, self._offline = http_port, address, offline
        self._lock = threading.RLock()
        self._connection: RayConnection | None = None
        self._serve: ServeAddress | None = None
        self._running: dict[str, _Running] = {}
        self._private: dict[str, frozenset[processes.ProcessId]] = {}
        self._logs: dict[str, Path] = {}
        self._cancelled = threading.Event()

    def open(self) -> ServeAddress:
        """Brings Ray and Serve up, if they are not. `start` does it by itself."""
        with self._lock:
            if self._serve is None:
                if self._on is None:
                    self._template()
                self._connection = ensure_ray(self._address)
                self._serve = ensure_serve(self._http_port)
            return self._serve

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        """Blocks until the engine answers.

        Raises: ModelUnavailable before anything is started; DeploymentError with class and cause.
        """
        target = resolve(deployment.target, offline=self._offline)
        speculation = deployment.speculation
        named_draft = speculation.draft_model if speculation else None
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
        address, on = self.open(), self._on
        ordered = time.monotonic()
        log_path = self._work.fresh_log(self._log_folder, name)
        self._logs[name] = log_path
        application = self._prefix + name
        route = route_prefix or f"/{application}"
        base_url = self._proxy(address) + route.rstrip("/")
        try:
            order(self._build, self._placed(served, log_path), application, route)
            wait_ready(application, self._work, log_path, timeout_s, self._cancelled)
            said = self._first_answer(base_url + app.FACTS_ROUTE)
        except DevicesLost:
            take_down(application, NodeWork(), frozenset())
            raise
        except BaseException as error:
            host = socket.gethostname() if on is None else self._host(log_path)
            take_down(application, self._work, known_processes(self._work, log_path, host))
            raise explained(error, self._work, log_path) from error
        took = time.monotonic() - ordered
        here = on is not None or said["host"] == socket.gethostname()
        pids = tuple(said["pids"]) if here else ()
        stages_path = None if said["stages_unavailable"] else app.STAGES_ROUTE
        endpoint = Endpoint(
            name,
            base_url,
            served.model_name,
            pids=pids,
            node=on.measured_from if on else None,
            stages_path=stages_path,
            simulated=bool(said.get("simulated")),
        )
        facts = _facts(key, target, said, took, pids, log_path)
        running = _Running(endpoint, facts, self._identify(pids))
        with self._lock:
            self._running[name] = running
        return endpoint

    def start_private(self, served: ServedEngine, *, name: str, timeout_s: float) -> Path:
        """`start_served` for an engine that only its own socket leads to; the path of that.

        Raises: ModelUnavailable, DeploymentError
        """
        assert served.direct is not None, "without a socket nothing leads to it"
        resolve(served.target, offline=self._offline)
        self.open()
        log_path = self._work.fresh_log(self._log_folder, name)
        self._logs[name] = log_path
        application = self._prefix + name
        try:
            order(self._build, self._placed(served, log_path), application, None)
            wait_ready(application, self._work, log_path, timeout_s, self._cancelled)
        except BaseException as error:
            host = socket.gethostname()
            take_down(application, self._work, known_processes(self._work, log_path, host))
            raise explained(error, self._work, log_path) from error
        running = known_processes(self._work, log_path, socket.gethostname())
        with self._lock:
            self._private[name] = running
        return Path(served.direct).expanduser()

    def _identify(self, pids: tuple[int, ...]) -> frozenset[processes.ProcessId]:
        return self._work.identify(pids) if pids else frozenset()

    def _host(self, log_path: Path) -> str:
        state = self._work.state(log_path)
        return state.host if state else ""

    def _proxy(self, address: ServeAddress) -> str:
        """Serve's proxy on the node from which the engine is asked."""
        on = self._on
        if on is None or on.asked_from is not None:
            return address.url
        port = on.work.proxy_port(address.port, is_head=on.is_head)
        return address.at(port)

    def _first_answer(self, url: str) -> dict[str, Any]:
        until = time.monotonic() + _PROXY_S
        while True:
            try:
                return self._asker.get_json(url)
            except OSError:
                if self._on is None or time.monotonic() >= until:
                    raise
                time.sleep(0.5)

    @property
    def _asker(self) -> NodeWork:
        on = self._on
        return self._work if on is None or on.asked_from is None else on.asked_from

    def facts(self, name: str) -> EngineFacts:
        """Raises: KeyError for a name that is not running."""
        return self._running[name].facts

    def healthy(self, name: str) -> bool:
        """Whether the same process still answers: an engine that was replaced is not healthy.

        Raises: DevicesLost when its node is gone.
        """
        running = self._running.get(name)
        if running is None:
            return False
        base_url = running.endpoint.base_url
        try:
            said = self._asker.get_json(base_url + app.FACTS_ROUTE, timeout_s=10)
            same = bool(said["pids"][0] == running.facts.extra["replica_pid"])
            return same and self._asker.answers(base_url + "/health")
        except ValueError:
            return False
        except OSError:
            self._refuse_lost_node()
            return False

    def _refuse_lost_node(self) -> None:
        """Of a node that is lost the engine goes first, and our agent a moment later: what looks
        like a crash is one only if the node is still there then. Raises: DevicesLost"""
        if self._on is None or self._on.measured_from is None:
            return
        until = time.monotonic() + _NODE_ENDS_S
        while time.monotonic() < until:
            self._work.has(self._log_folder)
            time.sleep(0.5)

    def can_sleep(self, name: str) -> bool:
        """Whether the engine was started with sleep mode, on accelerators."""
        running = self._running.get(name)
        return running is not None and bool(running.facts.extra.get("can_sleep"))

    def sleep(self, name: str) -> None:
        """Its weights go to the host's memory, its KV cache is dropped. Raises: DeploymentError"""
        self._order_engine(name, app.SLEEP_ROUTE)

    def wake(self, name: str) -> None:
        self._order_engine(name, app.WAKE_ROUTE)

    def _order_engine(self, name: str, route: str) -> None:
        base_url = self._running[name].endpoint.base_url
        try:
            self._asker.post(base_url + route, _SLEEP_S)
        except OSError as error:
            raise DeploymentError(
                FailureClass.UNRESPONSIVE.value, f"{name} did not obey {route}: {error}"
            ) from error

    def autopsy(self, name: str) -> DeploymentError | None:
        """From the engine's processes and the end of its log."""
        running = self._running.get(name)
        if running is None:
            return None
        with contextlib.suppress(DevicesLost):
            return autopsy(name, self._work, running.processes, self._logs[name])
        return None

    def stop(self, name: str) -> None:
        """Returns when the processes are gone and their memory is free. Unknown name: nothing."""
        with self._lock:
            running = self._running.pop(name, None)
            private = self._private.pop(name, None)
        if private is not None:
            take_down(self._prefix + name, self._work, private)
        if running is None:
            return
        known = running.processes
        with contextlib.suppress(DevicesLost):
            known |= self._identify(running.endpoint.pids)
        take_down(self._prefix + name, self._work, known)

    def cancel(self) -> None:
        """Makes every start in progress, and every later one, raise Interrupted; at once."""
        self._cancelled.set()

    def close(self) -> None:
        """Stops every engine started here, starting ones too; ends Serve and Ray if they were
        started here."""
        self.cancel()
        names = [*self._running, *self._private]
        try:
            with ThreadPoolExecutor(max(1, len(names))) as threads:
                list(threads.map(self.stop, names))
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            ray_ends = self._connection is not None and self._connection.started_here
            if self._serve is not None and self._serve.started_here and not ray_ends:
                serve.shutdown()
            self._serve = None
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._work.close()

    def log_path(self, name: str) -> Path | None:
        """The log of the last engine started under that name."""
        return self._logs.get(name)

    def _template(self) -> str | None:
        """Of vLLM, so for its own app only."""
        return self._work.template(self._log_folder) if self._build is app.build else None

    def _placed(self, served: ServedEngine, log_path: Path) -> ServedEngine:
        """The arguments with what only its node knows: the log, the template, the devices."""
        variables = {"HF_HUB_OFFLINE": "1"} if self._offline else {}
        shared = self._template()
        if shared:
            variables[template.VARIABLE] = shared
        place = self._on.place if self._on else None
        if place is not None and place.devices is not None:
            variables["CUDA_VISIBLE_DEVICES"] = place.devices
        placed = {} if place is None else place.actor_options
        return served.model_copy(
            update={
                "log_path": str(log_path),
                "environment": {**variables, **served.environment},
                "ray_actor_options": {**served.ray_actor_options, **placed},
                "placement_group": place.group if place else None,
            }
        )


def _facts(
    key: str,
    target: ResolvedModel,
    said: dict[str, Any],
    took_s: float,
    pids: tuple[int, ...],
    log_path: Path,
) -> EngineFacts:
    folder = target.local_path
    weights = [path.stat().st_size for path in folder.glob("*.safetensors")] if folder else []
    return EngineFacts(
        deployment_key=key,
        engine=said["engine"],
        engine_version=said["engine_version"],
        model=said["model"],
        start_s=took_s,
        pids=pids,
        kv_capacity_tokens=said["kv_capacity_tokens"],
        model_bytes=sum(weights) or None,
        simulated=bool(said.get("simulated")),
        extra={
            "can_sleep": said.get("can_sleep", False),
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
