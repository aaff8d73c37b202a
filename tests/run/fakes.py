"""A world in memory: engines that start at once and answer by rule."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchestrator.errors import DeploymentError
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt
from orchestrator.plan.deployment import Deployment, DeploymentPair, Speculation
from orchestrator.plan.trial import Cell, LoadPoint, Protocol, Sampling, Trial, WorkloadRef
from orchestrator.ports import BlockObservation, Endpoint
from orchestrator.records import (
    ClientHealth,
    CounterSnapshot,
    EngineFacts,
    RequestError,
    RequestRecord,
    Sample,
)
from orchestrator.run.trial import Judgement
from orchestrator.run.trial_seconds import Pair

BASELINE = Deployment("target", {"max_model_len": 128})


def speculative(k: int = 4) -> Deployment:
    return Deployment("target", {"max_model_len": 128}, Speculation("ngram", k))


def trial(*, k: int = 4, seed: int = 0, pairs: tuple[int, int] = (2, 4)) -> Trial:
    return Trial(
        kind="comparison",
        pair=DeploymentPair(BASELINE, speculative(k)),
        cell=Cell(
            method="ngram",
            draft=None,
            speculation_length=k,
            batch_size=1,
            sampling=Sampling(),
            workload=WorkloadRef("chat", "bundled:chat", "hash", 8),
            load=LoadPoint("closed", concurrency=1),
        ),
        protocol=Protocol(pairs_min=pairs[0], pairs_max=pairs[1]),
        seed=seed,
    )


@dataclass
class FakeDeployer:
    """Records what it is told; `refuse` names labels of deployments that do not start."""

    refuse: set[str] = field(default_factory=set)
    started: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    closed: bool = False
    autopsies: dict[str, DeploymentError] = field(default_factory=dict)
    """By the first part of the engine's name."""

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        if deployment.label() in self.refuse:
            raise DeploymentError("out_of_memory", "no room for the draft", "log line")
        self.started.append(deployment.label())
        return Endpoint(name, f"http://127.0.0.1:1/{name}", "target")

    def facts(self, name: str) -> EngineFacts:
        return EngineFacts(name, "fake", "1", "target", 0.0)

    def healthy(self, name: str) -> bool:
        return name not in self.dead and name not in self.stopped

    def autopsy(self, name: str) -> DeploymentError | None:
        return self.autopsies.get(name.split("-")[0])

    def stop(self, name: str) -> None:
        self.stopped.append(name)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeBlocks:
    def warmup(self) -> BlockPlan:
        return self._plan("warm")

    def pair(self, index: int) -> BlockPlan:
        return self._plan(f"p{index}")

    def _plan(self, prompt: str) -> BlockPlan:
        request = PlannedRequest(prompt, Prompt(prompt, "any", ("hello",)), None, 4, None)
        return BlockPlan((request,), LoadPoint("closed", 1), Sampling(), "chat", True, "first_turn")


@dataclass
class FakeClient:
    """Answers in `seconds(endpoint)`; `fail_when(endpoint, prompt id)` says which requests fail."""

    fail_when: Callable[[Endpoint, str], bool] = lambda endpoint, prompt: False
    sent: list[tuple[str, str]] = field(default_factory=list)

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        records = tuple(self._answer(endpoint, request) for request in block.requests)
        return BlockObservation(0.0, 1.0, records, ClientHealth(0, 0, 0, 0, 0))

    def _answer(self, endpoint: Endpoint, request: PlannedRequest) -> RequestRecord:
        self.sent.append((endpoint.name.split("-")[0], request.request_id))
        failed = self.fail_when(endpoint, request.prompt.id)
        return RequestRecord(
            request.request_id,
            request.prompt.id,
            "any",
            0,
            None,
            0.0,
            () if failed else (0.1, 0.2, 0.3, 0.4),
            None if failed else (1, 1, 1, 1),
            None if failed else 0.4,
            1,
            None if failed else 4,
            4,
            None if failed else "length",
            "",
            error=RequestError.RESET if failed else None,
            error_text="connection reset" if failed else None,
        )

    def close(self) -> None: ...


class FakeProbe:
    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        return None


class FakeTelemetry:
    def start(self, endpoint: Endpoint) -> FakeTelemetry:
        return self

    def stop(self) -> tuple[Sample, ...]:
        return ()


def stop_after(pairs: int) -> Callable[[Trial, Sequence[Pair]], Judgement]:
    return lambda trial, done: Judgement({"speedup_throughput": 1.0}, len(done), len(done) >= pairs)


class FakeClock:
    """One second later every time it is asked."""

    def __init__(self) -> None:
        self._ticks = itertools.count()
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            return float(next(self._ticks))
