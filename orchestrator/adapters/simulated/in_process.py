"""Deployer, probe and telemetry of the simulated machine room, on virtual time.

The load client is in `load_client`. Nothing sleeps and no socket is opened; everything that comes
out says `simulated`.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

from orchestrator.adapters.simulated.world import EPOCH_UNIX_S, Room, SimulatedWorld
from orchestrator.errors import DeploymentError, SpecError
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Endpoint
from orchestrator.records import CounterSnapshot, EngineFacts, FailureClass, Sample

ENGINE_NAME = "simulated"


class SimulatedDeployer:
    """Starts and stops simulated engines; planted start failures fail."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._names: set[str] = set()

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        """Raises: DeploymentError out_of_memory, start_failed or start_timeout where planted, and
        bad_configuration for parameters that cannot be."""
        try:
            room = self._world.open(deployment, name)
        except SpecError as error:
            raise DeploymentError(
                FailureClass.BAD_CONFIGURATION, str(error.faults[0]), str(error)
            ) from error
        if failure := _start_failure(room, timeout_s):
            self._world.shut(name)
            raise failure
        self._names.add(name)
        return self._world.endpoint(room)

    def facts(self, name: str) -> EngineFacts:
        """Raises: DeploymentError if nothing of that name runs."""
        room = self._room(name)
        configuration = room.configuration
        return EngineFacts(
            deployment_key=room.deployment.key,
            engine=ENGINE_NAME,
            engine_version=_product_version(),
            model=room.deployment.target,
            start_s=configuration.model.start_s + configuration.faults.slow_start_s,
            kv_capacity_tokens=configuration.kv_capacity_tokens,
            model_bytes=int(configuration.model.memory_bytes),
            simulated=True,
            extra={"profile": configuration.model.name},
        )

    def healthy(self, name: str) -> bool:
        room = self._world.find(name)
        if room is None:
            return False
        self._world.enter(room.engine)
        return not room.engine.crashed and not room.engine.hung

    def autopsy(self, name: str) -> DeploymentError | None:
        room = self._world.find(name)
        if room is None:
            return None
        if room.engine.hung:
            return DeploymentError(
                FailureClass.UNRESPONSIVE, f"simulated: {name} runs but does not answer (planted)"
            )
        return DeploymentError(FailureClass.CRASHED, f"simulated: {name} ended (planted)")

    def stop(self, name: str) -> None:
        self._world.shut(name)
        self._names.discard(name)

    def close(self) -> None:
        for name in list(self._names):
            self.stop(name)

    def _room(self, name: str) -> Room:
        room = self._world.find(name)
        if room is None:
            raise DeploymentError(
                FailureClass.CRASHED, f"no simulated engine {name!r} runs; start it first"
            )
        return room


def _start_failure(room: Room, timeout_s: float) -> DeploymentError | None:
    configuration = room.configuration
    start_s = configuration.model.start_s + configuration.faults.slow_start_s
    planted = configuration.faults.start_failure
    if start_s > timeout_s:
        return DeploymentError(
            FailureClass.START_TIMEOUT,
            f"simulated engine {room.name!r} not ready after {timeout_s:g} s (it needs "
            f"{start_s:g} s); raise the start timeout",
            "loading weights",
        )
    if planted == "out_of_memory":
        cause = "simulated: out of memory while allocating the KV cache (planted)"
        return DeploymentError(FailureClass.OUT_OF_MEMORY, cause, f"RuntimeError: {cause}")
    if planted == "start_failed":
        cause = "simulated: the engine ended during its start (planted)"
        return DeploymentError(FailureClass.START_FAILED, cause, f"RuntimeError: {cause}")
    return None


class SimulatedProbe:
    """Reads a simulated engine's counters, with vLLM's semantics."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world

    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        room = self._world.at(endpoint)
        if room is None or room.engine.crashed:
            return None
        return snapshot(room, self._world.unix_s)


def snapshot(room: Room, at_unix_s: float) -> CounterSnapshot:
    """A simulated engine's counters. Speculation's are None in a baseline: it has none."""
    engine, counters = room.engine, room.engine.counters
    scheduler, acceptance = engine.scheduler, engine.acceptance
    speculative = room.configuration.speculation_length > 0

    def of_speculation(value: int) -> float | None:
        return float(value) if speculative else None

    return CounterSnapshot(
        at_unix_s=at_unix_s,
        replica_ids=(room.replica_id,),
        drafts=of_speculation(acceptance.drafts),
        draft_tokens=of_speculation(acceptance.draft_tokens),
        accepted_tokens=of_speculation(acceptance.accepted_tokens),
        accepted_per_position=(
            tuple(float(n) for n in acceptance.accepted_per_position) if speculative else None
        ),
        prompt_tokens=float(counters.prompt_tokens),
        generation_tokens=float(counters.generation_tokens),
        requests_finished=float(counters.requests_finished),
        preemptions=float(counters.preemptions),
        kv_cache_usage=scheduler.kv_used / scheduler.kv_capacity_tokens,
        running_requests=float(scheduler.running),
        waiting_requests=float(len(scheduler.waiting)),
    )


class SimulatedTelemetry:
    """Two samples a block, at its start and its end: virtual time has no moments in between."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world

    def start(self, endpoint: Endpoint) -> SimulatedTelemetryRun:
        room = self._world.at(endpoint)
        return SimulatedTelemetryRun(lambda: _reading(room), lambda: self._world.now_s)


class SimulatedTelemetryRun:
    def __init__(self, read: Callable[[], dict[str, float]], now_s: Callable[[], float]) -> None:
        self._read, self._now_s = read, now_s
        self._began_s = now_s()
        self._first = Sample(0.0, read())

    def stop(self) -> tuple[Sample, ...]:
        return (self._first, Sample(self._now_s() - self._began_s, self._read()))


def _reading(room: Room | None) -> dict[str, float]:
    if room is None:
        return {}
    engine = room.engine
    return {
        "process_rss_bytes": engine.memory_bytes,
        "kv_cache_usage": engine.scheduler.kv_used / engine.scheduler.kv_capacity_tokens,
        "running_requests": float(engine.scheduler.running),
        "waiting_requests": float(len(engine.scheduler.waiting)),
        "preemptions": float(engine.counters.preemptions),
    }


def unix_of(moment_s: float) -> float:
    """The wall-clock reading of a moment of the virtual clock."""
    return EPOCH_UNIX_S + moment_s


def _product_version() -> str | None:
    try:
        return importlib.metadata.version("speculation-orchestrator")
    except importlib.metadata.PackageNotFoundError:
        return None
