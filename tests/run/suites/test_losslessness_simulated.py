"""The losslessness suite on the simulated engine, with wrong samplers planted as an experiment
file would plant them."""

import dataclasses

import pytest

from orchestrator.adapters.simulated.asker import SimulatedAsker
from orchestrator.adapters.simulated.embedder import BagOfWordsEmbedder
from orchestrator.adapters.simulated.in_process import SimulatedDeployer, SimulatedProbe
from orchestrator.adapters.simulated.world import SimulatedWorld
from orchestrator.analyse.suites.losslessness import judge_losslessness
from orchestrator.plan.arms import relaunched
from orchestrator.plan.deployment import Deployment, DeploymentPair, Speculation
from orchestrator.ports import Endpoint
from orchestrator.run.suites.losslessness import GreedySize, LosslessnessSuite, SamplingSize
from orchestrator.run.suites.record import Subject, SuiteResult
from orchestrator.run.suites.suite import Bench

SUITE = LosslessnessSuite(
    (0.8,), GreedySize(20, 8, 8, tokens=12), SamplingSize(prompts=6, samples=80, tokens=9)
)


class Engines:
    """Three simulated engines, the speculative one with defects."""

    available: tuple[Subject, ...] = ("baseline", "speculative", "baseline_again")
    notes: tuple[str, ...] = ()

    def __init__(self, seed: int, defects: list[str]) -> None:
        engine = {"max_model_len": 2048, "max_num_seqs": 8}
        planted = {"simulated": {"speculative": {"faults": {"defects": defects}}}}
        baseline = Deployment("tiny", engine | (planted if defects else {}))
        self.pair = DeploymentPair(
            baseline, dataclasses.replace(baseline, speculation=Speculation("ngram", 2))
        )
        self.world = SimulatedWorld(seed)
        self._deployer = SimulatedDeployer(self.world)
        started = (baseline, self.pair.speculative, relaunched(baseline))
        self._endpoints = {
            subject: self._deployer.start(deployment, name=subject, timeout_s=1e6)
            for subject, deployment in zip(self.available, started, strict=True)
        }

    def endpoint(self, subject: Subject) -> Endpoint:
        return self._endpoints[subject]

    def healthy(self, subject: Subject) -> bool:
        return self._deployer.healthy(subject)

    def restart(self, subject: Subject) -> Endpoint:
        raise AssertionError("no engine dies here")

    def rss_bytes(self, subject: Subject) -> float | None:
        return None

    def bench(self, seed: int) -> Bench:
        return Bench(
            pair_key=f"pair-{seed}",
            baseline=self.pair.baseline.as_dict(),
            speculative=self.pair.speculative.as_dict(),
            subjects=self,
            asker=SimulatedAsker(self.world),
            probe=SimulatedProbe(self.world),
            now=lambda: self.world.now_s,
            deadline_s=1e9,
            seed=seed,
            embedder=BagOfWordsEmbedder(),
        )


SHORT = dataclasses.replace(SUITE, sampling=SamplingSize(prompts=3, samples=40, tokens=6))


def judged(*defects: str, seed: int = 0, suite: LosslessnessSuite = SUITE) -> SuiteResult:
    return judge_losslessness(suite.run(Engines(seed, list(defects)).bench(seed)))


@pytest.mark.parametrize(
    "defect", ["ignores_temperature", "accepts_too_much", "biased_bonus_token"]
)
def test_a_wrong_sampler_is_caught(defect: str) -> None:
    found = judged(defect)
    assert found.verdict == "not lossless"
    named = {case.case for case in found.findings}
    assert "sampled at 0.8: token frequencies" in named
    assert "temperature 0" not in named


def test_wrong_greedy_answers_are_caught() -> None:
    found = judged("greedy_differs", suite=SHORT)
    assert found.verdict == "not lossless"
    assert "temperature 0" in {case.case for case in found.findings}


@pytest.mark.slow
def test_a_healthy_engine_yields_no_finding_over_20_seeds() -> None:
    for seed in range(20):
        found = judged(seed=seed, suite=SHORT)
        assert (found.findings, found.verdict) == ((), "lossless"), seed


def test_a_healthy_engine_is_lossless() -> None:
    found = judged(suite=SHORT)
    assert (found.findings, found.verdict, found.simulated) == ((), "lossless", True)
