"""The machines of a sweep: Ray joined or started, devices reserved, the engines' pool opened."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.adapters.node_work import NodeWork
from orchestrator.adapters.ray_cluster import (
    AgentOf,
    ClusterNodes,
    EnginePlace,
    Measuring,
    Reserved,
    find_nodes,
    reserve,
)
from orchestrator.adapters.ray_cluster.janitor import leave_serve, start_janitor, take_down_all
from orchestrator.adapters.ray_local import RayConnection, ServeAddress, ensure_ray, ensure_serve
from orchestrator.adapters.serve_application import Build
from orchestrator.errors import DeploymentError, DevicesLost
from orchestrator.plan.arms import layout, strategy
from orchestrator.plan.deployment import Deployment
from orchestrator.plan.facts import ClusterFacts
from orchestrator.plan.placing import Layout, Place, Slot, Strategy, spreads
from orchestrator.ports import DeviceUse, Telemetry
from orchestrator.records import FailureClass
from orchestrator.run.slots import SlotDevices
from orchestrator.serving import app
from orchestrator.spec.experiment import Experiment

CLOSE_S = 8.0
"""For the engines to end by themselves; then Ray, if it was started here, takes them along."""


def measuring() -> Measuring:
    """What a node measures its engines with."""
    from orchestrator.adapters.http.asker import HttpAsker
    from orchestrator.adapters.http.prometheus import PrometheusProbe
    from orchestrator.adapters.ray_local import ray_processes

    return Measuring(_client, HttpAsker(), PrometheusProbe(), _telemetry(ray_processes))


def _client() -> Any:
    """Off the engines' cores, where engines run on processors."""
    from orchestrator.adapters.http.client import HttpLoadClient

    return HttpLoadClient(workers=1, cpus=load_cpus())


def load_cpus() -> Collection[int] | None:
    """Where load is sent from; None: from anywhere."""
    from orchestrator.serving.environment import allowed_cpus, client_cpus

    return client_cpus(allowed_cpus()) if app.runs_on_cpu() else None


def _telemetry(alongside: Callable[[], Iterable[int]]) -> Telemetry:
    from orchestrator.adapters.local.combined_telemetry import CombinedTelemetry
    from orchestrator.adapters.local.telemetry import HostTelemetry
    from orchestrator.adapters.nvml import NvmlTelemetry, nvml_or_none

    nvml = nvml_or_none()
    host = HostTelemetry(alongside=alongside)
    return host if nvml is None else CombinedTelemetry(host, NvmlTelemetry(nvml))


@dataclass
class Joined:
    """A Ray that is connected, and what it has."""

    connection: RayConnection
    nodes: ClusterNodes

    @property
    def facts(self) -> ClusterFacts:
        nodes = self.nodes.facts
        return ClusterFacts(
            gpus=sum(node.gpus for node in nodes),
            cpus=sum(node.cpus for node in nodes),
            nodes=nodes,
        )

    def environment(self, experiment: Experiment, folder: Path) -> dict[str, Any] | None:
        """Of a node that engines run on, with the nodes beside it; None where no pair fits."""
        found = layout(experiment, self.facts)
        if found is None or not found.slots:
            return None
        work = self.nodes.work(found.slots[0].places[0].node)
        nodes = [asdict(node) for node in self.facts.nodes]
        return {**work.environment(folder), "cluster": {"nodes": nodes, "model": found.model}}

    def close(self) -> None:
        with contextlib.suppress(DevicesLost):
            self.nodes.close()
        self.connection.close()


def join(address: str | None) -> Joined:
    """Raises: DeploymentError when there is no cluster at `address`."""
    try:
        connection = ensure_ray(address)
    except ConnectionError as error:
        raise DeploymentError(
            FailureClass.START_FAILED.value,
            f"no Ray cluster answers at {address}: {str(error).splitlines()[0]}; is it up "
            "(`ray status`), and is RAY_AUTH_MODE here what it is there?",
        ) from error
    return Joined(connection, find_nodes(measuring))


@dataclass(frozen=True)
class _PlaceSpec:
    """A place, as the pool's process needs it. Picklable."""

    place: EnginePlace
    is_head: bool
    agent: AgentOf | None
    measured_from: str | None
    asked_from: AgentOf | None


@dataclass(frozen=True)
class _SlotSpec:
    places: tuple[_PlaceSpec, ...]
    spares: tuple[_PlaceSpec, ...]
    devices: frozenset[str]


class MachineRoom:
    """Everything that a sweep started, and ends again."""

    def __init__(
        self,
        experiment: Experiment,
        logs: Path,
        joined: Joined | None,
        *,
        prefix: str = "",
        build: Build = app.build,
        models: Mapping[str, Path] | None = None,
    ) -> None:
        self._experiment, self._logs, self._joined = experiment, logs, joined
        self._prefix, self._build, self._models = prefix, build, models or {}
        self._serve_started = False
        self._reserved: list[Reserved] = []
        self._layout: Layout | None = None
        self._strategy: Strategy | None = None
        self.pool: Any = None
        self._janitor: Any = None

    @property
    def at_once(self) -> int:
        return self._layout.at_once if self._layout else 1

    @property
    def in_turn(self) -> bool:
        return self._strategy == "in_turn"

    @property
    def agents(self) -> dict[str, AgentOf]:
        return dict(self._joined.nodes.agents) if self._joined else {}

    def open(self, *, coming: Sequence[Deployment], warm_per_slot: int) -> None:
        """Raises: DeploymentError, ModelUnavailable"""
        from orchestrator.adapters.ray_tune import start_pool

        self._joined = joined = self._joined or join(None)
        self._layout = found = layout(self._experiment, joined.facts)
        if found is None or not found.slots:
            raise DeploymentError(
                FailureClass.START_FAILED.value,
                "no pair of arms fits on the nodes that are there now; "
                "see `python -m orchestrator plan`",
            )
        several = len(joined.nodes.facts) > 1
        used = [node for slot in found.slots for place in slot.places for node, _ in place.parts]
        joined.nodes.refuse_missing(self._models, used)
        address = ensure_serve(every_node=several)
        self._serve_started = address.started_here
        if self._prefix:
            take_down_all(self._prefix)  # what an earlier run left, if its janitor was lost too
        specs = [self._spec(slot, joined.nodes, address) for slot in found.slots]
        self._strategy = strategy(self._experiment, joined.facts)
        self.pool = start_pool(
            functools.partial(_slots, specs, self._logs, self._prefix, self._build),
            slots=found.at_once,
            in_turn=self.in_turn,
            start_timeout_s=self._experiment.measure.timeouts.start_s,
            warm_per_slot=warm_per_slot,
            coming=tuple(coming),
        )
        if self._prefix:
            self._janitor = start_janitor(
                self.pool, self._prefix, serve_started=self._serve_started
            )

    def _spec(self, slot: Slot, nodes: ClusterNodes, address: ServeAddress) -> _SlotSpec:
        # Where the head alone has a proxy, or the arms are on different nodes: from the head.
        from_head = slot.spans_nodes or not (address.every_node or len(nodes.facts) == 1)

        def placed(place: Place) -> _PlaceSpec:
            reserved = reserve(place, workers_are_actors=spreads(self._experiment.engine))
            self._reserved.append(reserved)
            return _PlaceSpec(
                place=reserved.place,
                is_head=nodes.is_head(place.node),
                agent=nodes.agents.get(place.node),
                measured_from=nodes.measured_from(nodes.head if from_head else place.node),
                asked_from=nodes.agents.get(nodes.head) if from_head else None,
            )

        quiet = [spare for spare in slot.spares if spare.cpus > 0]
        return _SlotSpec(
            tuple(placed(place) for place in slot.places),
            # On cores of its own only: it would disturb the pair that is measured.
            tuple(placed(place) for place in quiet),
            slot.devices,
        )

    def use(self) -> DeviceUse:
        """What the pool has done so far; the last that was heard where it does not answer."""
        import ray

        if self.pool is None:
            return DeviceUse(self.at_once)
        with contextlib.suppress(ray.exceptions.RayError):
            counts = ray.get(self.pool.counts.remote(), timeout=CLOSE_S)
            return DeviceUse(
                self.at_once, counts.engine_starts, counts.failed_starts, counts.starting_s
            )
        return DeviceUse(self.at_once)

    def close(self) -> None:
        """Stop engines, Serve and Ray as far as they were started here. May be called twice."""
        joined, self._joined = self._joined, None
        if joined is None:
            return
        import ray
        from ray import serve

        pool, self.pool = self.pool, None
        janitor, self._janitor = self._janitor, None
        if janitor is not None:
            ray.kill(janitor)
        try:
            if pool is not None:
                # A pool that does not answer is no reason to leave Ray running.
                limit = CLOSE_S if joined.connection.started_here else 4 * CLOSE_S
                with contextlib.suppress(ray.exceptions.RayError):
                    ray.get(pool.close.remote(), timeout=limit)
                ray.kill(pool)
            if not joined.connection.started_here:
                if self._prefix:
                    leave_serve(self._prefix, started_here=self._serve_started)
                elif self._serve_started:
                    serve.shutdown()
                for reserved in self._reserved:
                    reserved.release()
        finally:
            self._reserved.clear()
            joined.close()


def _slots(specs: Sequence[_SlotSpec], logs: Path, prefix: str, build: Build) -> list[SlotDevices]:
    """In the pool's process: a deployer for every place."""
    from orchestrator.adapters.ray_cluster.agent import RemoteWork
    from orchestrator.adapters.ray_serve import OnNode, RayServeDeployer

    here = NodeWork()  # one template for all engines of this node

    def deployer(spec: _PlaceSpec) -> RayServeDeployer:
        return RayServeDeployer(
            logs,
            on=OnNode(
                place=spec.place,
                work=here if spec.agent is None else RemoteWork(spec.agent),
                is_head=spec.is_head,
                measured_from=spec.measured_from,
                asked_from=None if spec.asked_from is None else RemoteWork(spec.asked_from),
            ),
            prefix=prefix,
            build=build,
        )

    return [
        SlotDevices(
            tuple(deployer(place) for place in spec.places),
            tuple(deployer(place) for place in spec.spares),
            spec.devices,
        )
        for spec in specs
    ]
