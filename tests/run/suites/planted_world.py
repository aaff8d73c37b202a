"""Two simulated engines on virtual time, sound but for the defects that a test plants."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.adapters.simulated.asker import SimulatedAsker
from orchestrator.adapters.simulated.in_process import SimulatedDeployer, SimulatedProbe
from orchestrator.adapters.simulated.world import SimulatedWorld
from orchestrator.errors import DeploymentError
from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.ports import Answer, Ask, Endpoint
from orchestrator.records import CounterSnapshot, RequestError
from orchestrator.run.suites.record import Subject
from orchestrator.run.suites.suite import Bench

LIMIT = 512
JITTER = {"jitter_sigma": 0.1}
ENGINE = {"max_model_len": LIMIT, "max_num_seqs": 8, "simulated": JITTER}
BASELINE = Deployment("tiny", ENGINE)
SPECULATIVE = Deployment("tiny", ENGINE, Speculation("ngram", 4))

Sound = Callable[[], Answer]
Override = Callable[["Arm", Ask, dict[str, Any], Sound], Answer | None]
"""What a defect makes of a request: its body and the sound answer are there to be used; None: the
sound answer stands."""


@dataclass
class Arm:
    """What is planted in one engine, besides its answers."""

    name: Subject
    alive: bool = True
    starts: int = 1
    kv: float = 0.0
    rss: float = 1e9
    accepted: float = 0.0
    seen: set[str] = field(default_factory=set)
    """Prompts that were here before."""


class PlantedWorld:
    """Asker, Subjects and ServerProbe in one; `defects` by arm."""

    def __init__(
        self,
        seed: int = 0,
        defects: dict[Subject, Override] | None = None,
        *,
        cannot_restart: bool = False,
    ) -> None:
        self.seed, self.cannot_restart = seed, cannot_restart
        self.defects = defects or {}
        self.world = SimulatedWorld(seed)
        self._deployer, self._asker = SimulatedDeployer(self.world), SimulatedAsker(self.world)
        self._probe = SimulatedProbe(self.world)
        self.arms: dict[Subject, Arm] = {}
        self.logs: dict[Subject, str] = {}
        self._endpoints: dict[Subject, Endpoint] = {}
        for subject in ("baseline", "speculative"):
            self.arms[subject] = Arm(subject)  # type: ignore[index,arg-type]
            self._start(subject)  # type: ignore[arg-type]
        self._began_s = self.world.now_s

    def bench(self, *, seconds: float = 1e9) -> Bench:
        return Bench(
            pair_key="pair",
            baseline=BASELINE.as_dict(),
            speculative=SPECULATIVE.as_dict(),
            subjects=self,
            asker=self,
            probe=self,
            now=lambda: self.world.now_s - self._began_s,
            deadline_s=seconds,
            seed=self.seed,
        )

    available: tuple[Subject, ...] = ("baseline", "speculative")
    notes: tuple[str, ...] = ()

    def endpoint(self, subject: Subject) -> Endpoint:
        return self._endpoints[subject]

    def healthy(self, subject: Subject) -> bool:
        return self.arms[subject].alive and self._deployer.healthy(str(subject))

    def restart(self, subject: Subject) -> Endpoint:
        if self.cannot_restart:
            raise DeploymentError("out_of_memory", "no room", "")
        self.arms[subject] = Arm(subject, starts=self.arms[subject].starts + 1)
        return self._start(subject)

    def rss_bytes(self, subject: Subject) -> float | None:
        return self.arms[subject].rss

    def log(self, subject: Subject) -> str | None:
        return self.logs.get(subject)

    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        counters, arm = self._probe.read(endpoint), self.arms[endpoint.name]  # type: ignore[index]
        if counters is None:
            return None
        accepted = counters.accepted_tokens
        return replace(
            counters,
            kv_cache_usage=(counters.kv_cache_usage or 0.0) + arm.kv,
            accepted_tokens=None if accepted is None else accepted + arm.accepted,
        )

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        arm = self.arms[endpoint.name]  # type: ignore[index]
        sound = self._asker.ask(endpoint, asks, in_flight=in_flight) if arm.alive else []
        return [
            self._planted(arm, ask, sound[i]) if arm.alive else _refused()
            for i, ask in enumerate(asks)
        ]

    def _planted(self, arm: Arm, ask: Ask, sound: Answer) -> Answer:
        defect = self.defects.get(arm.name)
        answer = None if defect is None else defect(arm, ask, parsed(ask), lambda: sound)
        return sound if answer is None else answer

    def _start(self, subject: Subject) -> Endpoint:
        deployment = BASELINE if subject == "baseline" else SPECULATIVE
        endpoint = self._deployer.start(deployment, name=str(subject), timeout_s=1e6)
        self._endpoints[subject] = endpoint
        return endpoint


def _refused() -> Answer:
    return Answer(None, "", error=RequestError.CONNECT, error_text="refused")


def parsed(ask: Ask) -> dict[str, Any]:
    try:
        body = json.loads(ask.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def refusal(status: int, message: str) -> Answer:
    return Answer(status, json.dumps({"error": {"message": message}}), seconds=0.01)
