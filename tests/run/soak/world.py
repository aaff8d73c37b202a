"""A soak on simulated engines, on virtual time, through the runner that real ones take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.adapters.simulated.asker import SimulatedAsker
from orchestrator.adapters.simulated.in_process import (
    SimulatedDeployer,
    SimulatedProbe,
    SimulatedTelemetry,
)
from orchestrator.adapters.simulated.stream import SimulatedSoak
from orchestrator.adapters.simulated.world import SimulatedWorld
from orchestrator.analyse.suites.soak import judge_soak
from orchestrator.plan.block import Prompt, Timeouts
from orchestrator.plan.deployment import Deployment, DeploymentPair, Speculation
from orchestrator.plan.fresh import FreshRequests, fresh_requests
from orchestrator.plan.trial import WorkloadRef
from orchestrator.records import Outcome
from orchestrator.run.pool import Pool
from orchestrator.run.soak.tools import SoakTools
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.record import SuiteRecord, SuiteResult
from orchestrator.run.suites.runner import SuiteRunner
from orchestrator.run.suites.soak import soak_settings
from orchestrator.spec.soak import Soak
from orchestrator.store.suite_folder import SuiteFolder

SLOW = {"profile": "fast", "target_fixed_s": 0.3, "jitter_sigma": 0.05, "start_s": 5.0}
"""A step takes a fifth of a second: hours of it are simulated in a second."""
CATEGORIES = ("chat", "code")


def requests(seed: int = 0, prompts: int = 40) -> FreshRequests:
    ref = WorkloadRef("mixed", "none", "hash", output_tokens=12)
    made = [
        Prompt(f"p{i}", CATEGORIES[i % 2], (f"Tell me about {i} rivers in the south",), tokens=8)
        for i in range(prompts)
    ]
    return fresh_requests([(ref, made)], mix={}, seed=seed, temperature=0.0, max_model_len=None)


class SoakWorld:
    """`simulated` is what both engines have, `speculative` what only one has."""

    def __init__(
        self,
        folder: Path,
        soak: Mapping[str, Any],
        *,
        seed: int = 0,
        simulated: Mapping[str, Any] | None = None,
        speculative: Mapping[str, Any] | None = None,
        schedule: list[list[int]] | None = None,
    ) -> None:
        self.world = SimulatedWorld(seed)
        engine = {
            "max_num_seqs": 16,
            "simulated": {**SLOW, **(simulated or {}), "speculative": dict(speculative or {})},
        }
        options = {} if schedule is None else {"num_speculative_tokens_per_batch_size": schedule}
        pair = DeploymentPair(
            Deployment("tiny", engine),
            Deployment("tiny", engine, Speculation("ngram", 3, options=options)),
        )
        settings = soak_settings(Soak.model_validate(soak), {"mixed": "hash"})
        self.job = SuiteJob("soak", pair, seed, settings)
        self.folder = SuiteFolder(folder / self.job.id)
        self.seed = seed
        self.said: list[str] = []

    def run(self, say: Callable[[str], None] | None = None) -> Outcome:
        soaking = SimulatedSoak(self.world)
        telemetry = SimulatedTelemetry(self.world)
        runner = SuiteRunner(
            pool=Pool(SimulatedDeployer(self.world)),
            asker=SimulatedAsker(self.world),
            probe=SimulatedProbe(self.world),
            telemetry=telemetry,
            soak=SoakTools(
                soaking.open, requests(self.seed), telemetry, lambda: soaking, Timeouts()
            ),
            now=lambda: self.world.now_s,
            unix_s=lambda: self.world.unix_s,
        )
        return runner.run(self.job, self.folder, say or self.said.append)

    def record(self) -> SuiteRecord:
        record = self.folder.record()
        assert record is not None
        return record

    def result(self) -> SuiteResult:
        return judge_soak(self.record())
