"""A process of ours on every node that engines run on, other than the driver's.

It looks after the engines there, and sends the load from there: the way to an engine is then the
same in every sweep, loopback, and the devices that are watched are the engine's.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.adapters.node_facts import this_node
from orchestrator.adapters.node_work import TAIL_CHARACTERS, NodeWork
from orchestrator.adapters.processes import ProcessId
from orchestrator.errors import DevicesLost, OrchestratorError
from orchestrator.plan.block import BlockPlan
from orchestrator.plan.facts import NodeFacts
from orchestrator.ports import (
    Answer,
    Ask,
    Asker,
    BlockObservation,
    Endpoint,
    LoadClient,
    ServerProbe,
    Telemetry,
    TelemetryRun,
)
from orchestrator.records import CounterSnapshot, FailureClass, Sample
from orchestrator.serving.engine_log import EngineState

_THREADS = 32


class Measuring:
    """The ports that a trial measures through, on one node. Blocks of several pairs may overlap."""

    def __init__(
        self,
        make_client: Callable[[], LoadClient],
        asker: Asker,
        probe: ServerProbe,
        telemetry: Telemetry,
    ) -> None:
        self.asker, self.probe, self.telemetry = asker, probe, telemetry
        self._make_client = make_client
        self._idle: list[LoadClient] = []
        self._lock = threading.Lock()

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        with self._lock:
            client = self._idle.pop() if self._idle else None
        client = client or self._make_client()
        seen = client.run_block(endpoint, block)  # one that failed is not used again
        with self._lock:
            self._idle.append(client)
        return seen

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().close()


class NodeAgent:
    """Inside the actor. Errors are returned, not raised: Ray wraps what is raised."""

    def __init__(self, make_measuring: Callable[[], Measuring]) -> None:
        self._work, self._measuring = NodeWork(), make_measuring()
        self._sampling: dict[int, TelemetryRun] = {}
        self._numbers = itertools.count()

    def facts(self, *given: Any, **named: Any) -> NodeFacts:
        return this_node(*given, **named)

    def work(self, method: str, *arguments: Any, **named: Any) -> Any:
        return _answered(lambda: getattr(self._work, method)(*arguments, **named))

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> Any:
        return _answered(lambda: self._measuring.run_block(endpoint, block))

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], in_flight: int) -> Any:
        return _answered(lambda: self._measuring.asker.ask(endpoint, asks, in_flight=in_flight))

    def read(self, endpoint: Endpoint) -> Any:
        return _answered(lambda: self._measuring.probe.read(endpoint))

    def start_sampling(self, endpoint: Endpoint) -> int:
        number = next(self._numbers)
        self._sampling[number] = self._measuring.telemetry.start(endpoint)
        return number

    def stop_sampling(self, number: int) -> tuple[Sample, ...]:
        return self._sampling.pop(number).stop()

    def close(self) -> None:
        self._measuring.close()
        self._work.close()


def _answered(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except (OrchestratorError, OSError, ValueError) as error:
        return _Raised(error)


class _Raised:
    def __init__(self, error: Exception) -> None:
        # urllib's errors hold sockets; what they say is enough, and travels.
        plain = OSError(str(error)) if isinstance(error, OSError) else error
        self.error: Exception = plain


def start_agent(node_id: str, make_measuring: Callable[[], Measuring]) -> Any:
    """The agent's actor on that node. It ends with the driver."""
    return (
        ray.remote(NodeAgent)
        .options(
            num_cpus=0,
            num_gpus=0,
            max_concurrency=_THREADS,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
        )
        .remote(make_measuring)
    )


class AgentOf:
    """One node's agent, from elsewhere; picklable. A node that is gone raises DevicesLost."""

    def __init__(self, node_id: str, actor: Any) -> None:
        self.node_id, self._actor = node_id, actor

    def ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        try:
            answer = ray.get(getattr(self._actor, method).remote(*arguments, **named))
        except (ray.exceptions.RayActorError, ray.exceptions.RaySystemError) as error:
            raise DevicesLost(
                FailureClass.DEVICES_LOST.value,
                f"node {self.node_id[:12]} is gone ({type(error).__name__})",
                str(error)[:2000],
            ) from error
        if isinstance(answer, _Raised):
            raise answer.error
        return answer

    def end(self) -> None:
        """Closes what it holds, then ends it."""
        with contextlib.suppress(ray.exceptions.RayError):
            ray.get(self._actor.close.remote(), timeout=10)
        ray.kill(self._actor)


class RemoteWork(NodeWork):
    """`NodeWork` on another node."""

    def __init__(self, agent: AgentOf) -> None:
        super().__init__()
        self._agent = agent

    def proxy_port(self, port: int, *, is_head: bool) -> int:
        return int(self._agent.ask("work", "proxy_port", port, is_head=is_head))

    def fresh_log(self, folder: Path, name: str) -> Path:
        return Path(self._agent.ask("work", "fresh_log", folder, name))

    def state(self, log: Path) -> EngineState | None:
        found: EngineState | None = self._agent.ask("work", "state", log)
        return found

    def log_tail(self, log: Path, characters: int = TAIL_CHARACTERS) -> str:
        return str(self._agent.ask("work", "log_tail", log, characters))

    def alive(self, running: frozenset[ProcessId]) -> list[int]:
        found: list[int] = self._agent.ask("work", "alive", running)
        return found

    def identify(self, pids: tuple[int, ...]) -> frozenset[ProcessId]:
        found: frozenset[ProcessId] = self._agent.ask("work", "identify", pids)
        return found

    def wait_gone(self, running: frozenset[ProcessId], grace_s: float) -> None:
        self._agent.ask("work", "wait_gone", running, grace_s)

    def get_json(self, url: str, timeout_s: float = 30.0) -> dict[str, Any]:
        found: dict[str, Any] = self._agent.ask("work", "get_json", url, timeout_s)
        return found

    def post(self, url: str, timeout_s: float) -> None:
        self._agent.ask("work", "post", url, timeout_s)

    def answers(self, url: str) -> bool:
        return bool(self._agent.ask("work", "answers", url))

    def has(self, path: Path) -> bool:
        return bool(self._agent.ask("work", "has", path))

    def environment(self, folder: Path) -> dict[str, Any]:
        found: dict[str, Any] = self._agent.ask("work", "environment", folder)
        return found

    def template(self, logs: Path) -> str | None:
        address: str | None = self._agent.ask("work", "template", logs)
        return address

    def close(self) -> None:
        """The agent's template serves every slot of its node, and ends with the agent."""


class NodePorts:
    """LoadClient, Asker, ServerProbe and Telemetry at once: a call goes to its endpoint's node."""

    def __init__(self, here: Measuring, agents: dict[str, AgentOf]) -> None:
        self._here, self._agents = here, agents

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        if endpoint.node is None:
            return self._here.run_block(endpoint, block)
        seen: BlockObservation = self._agents[endpoint.node].ask("run_block", endpoint, block)
        return seen

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        if endpoint.node is None:
            return self._here.asker.ask(endpoint, asks, in_flight=in_flight)
        said: list[Answer] = self._agents[endpoint.node].ask("ask", endpoint, asks, in_flight)
        return said

    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        if endpoint.node is None:
            return self._here.probe.read(endpoint)
        found: CounterSnapshot | None = self._agents[endpoint.node].ask("read", endpoint)
        return found

    def start(self, endpoint: Endpoint) -> TelemetryRun:
        if endpoint.node is None:
            return self._here.telemetry.start(endpoint)
        agent = self._agents[endpoint.node]
        return _RemoteSampling(agent, agent.ask("start_sampling", endpoint))

    def close(self) -> None:
        self._here.close()


class _RemoteSampling:
    def __init__(self, agent: AgentOf, number: int) -> None:
        self._agent, self._number = agent, number

    def stop(self) -> tuple[Sample, ...]:
        samples: tuple[Sample, ...] = self._agent.ask("stop_sampling", self._number)
        return samples
