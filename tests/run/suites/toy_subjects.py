"""What engines that are made for a test have in common: addresses, health, a clock, a bench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestrator.adapters.simulated.embedder import BagOfWordsEmbedder
from orchestrator.plan.deployment import Deployment, DeploymentPair, Speculation
from orchestrator.ports import Endpoint
from orchestrator.records import CounterSnapshot
from orchestrator.run.suites.record import Subject
from orchestrator.run.suites.suite import Bench

ENGINE = {"max_model_len": 2048, "dtype": "bfloat16"}
PAIR = DeploymentPair(Deployment("toy", ENGINE), Deployment("toy", ENGINE, Speculation("ngram", 3)))


@dataclass(kw_only=True)
class ToySubjects:
    """Subjects and ServerProbe of three engines that live for ever and count nothing."""

    relaunched: bool = True
    """Whether there is a third one, the baseline relaunched."""
    now_s: float = 0.0

    @property
    def available(self) -> tuple[Subject, ...]:
        both: tuple[Subject, ...] = ("baseline", "speculative")
        return (*both, "baseline_again") if self.relaunched else both

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def endpoint(self, subject: Subject) -> Endpoint:
        return Endpoint(subject, f"http://{subject}", "toy", simulated=True)

    def healthy(self, subject: Subject) -> bool:
        return True

    def restart(self, subject: Subject) -> Endpoint:
        return self.endpoint(subject)

    def rss_bytes(self, subject: Subject) -> float | None:
        return None

    def log(self, subject: Subject) -> str | None:
        return None

    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        return None


def bench(server: Any, *, seconds: float = 1e9, seed: int = 0, embeds: bool = True) -> Bench:
    """`server` is an Asker as well."""
    return Bench(
        pair_key=f"pair-{seed}",
        baseline=PAIR.baseline.as_dict(),
        speculative=PAIR.speculative.as_dict(),
        subjects=server,
        asker=server,
        probe=server,
        now=lambda: server.now_s,
        deadline_s=seconds,
        seed=seed,
        embedder=BagOfWordsEmbedder() if embeds else None,
    )
