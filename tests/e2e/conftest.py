"""One local Ray with both arms, brought up once for all tests that need real engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.ports import Endpoint

if TYPE_CHECKING:
    from orchestrator.adapters.ray_serve import RayServeDeployer

MODEL = "smollm2-135m-instruct"
ENGINE = {"dtype": "bfloat16", "max_model_len": 1024, "max_num_seqs": 4, "enforce_eager": True}
START_TIMEOUT_S = 900.0

BASELINE = Deployment(MODEL, ENGINE)
NGRAM = Deployment(MODEL, ENGINE, Speculation("ngram", 3, options={"prompt_lookup_max": 4}))


@dataclass(frozen=True)
class Arms:
    """Two running engines and what started them."""

    deployer: RayServeDeployer
    baseline: Endpoint
    speculative: Endpoint

    def both(self) -> tuple[Endpoint, Endpoint]:
        return self.baseline, self.speculative


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The prepared model; made ready if it is not."""
    pytest.importorskip("vllm", reason="needs the extra `cpu`")
    from orchestrator.models.prepare import prepare

    return prepare(MODEL)


@pytest.fixture(scope="session")
def arms(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arms]:
    """Baseline and n-gram speculation side by side, started at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    from orchestrator.adapters.ray_serve import RayServeDeployer

    deployer = RayServeDeployer(tmp_path_factory.mktemp("engine-logs"))
    try:
        deployer.open()

        def start(name: str, deployment: Deployment) -> Endpoint:
            return deployer.start(deployment, name=name, timeout_s=START_TIMEOUT_S)

        with ThreadPoolExecutor(2) as threads:
            baseline = threads.submit(start, "baseline", BASELINE)
            speculative = threads.submit(start, "speculative", NGRAM)
        yield Arms(deployer, baseline.result(), speculative.result())
    finally:
        deployer.close()
