"""The over-saturation test on a batching engine, whose answers end in clumps."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.adapters.simulated.configuration import EngineConfiguration
from orchestrator.adapters.simulated.drive import drive
from orchestrator.adapters.simulated.engine import SimulatedEngine, seeded
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.truth_by_simulation import RequestShape, run_closed
from orchestrator.analyse.growth import Timeline
from orchestrator.analyse.saturation import Regime, verdict_of
from tests.adapters.simulated.build import configuration

CAP = 16
BLOCKS = 12


def open_block(engine: EngineConfiguration, rate_rps: float, requests: int, seed: int) -> Timeline:
    gaps = np.random.default_rng(seed).exponential(1.0, requests) / rate_rps
    jobs = [Job(str(i), 200, 64) for i in range(requests)]
    running = SimulatedEngine(engine, seeded(engine, str(seed)))
    drive(running, zip(np.cumsum(gaps).tolist(), jobs, strict=True))
    return Timeline(
        np.array([job.arrival_s for job in jobs]),
        np.array([job.chunk_s[0] for job in jobs]),
        np.array([job.chunk_s[-1] for job in jobs]),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "regime"), [(0.8, Regime.STEADY), (1.2, Regime.SATURATED), (1.5, Regime.SATURATED)]
)
def test_an_engine_that_runs_16_at_once(load: float, regime: Regime) -> None:
    """Capacity from a closed loop of 32; blocks of 800 requests. At least 11 of 12 blocks agree."""
    engine = configuration(profile="llama-8b-h100", engine={"max_num_seqs": CAP})
    full = run_closed(engine, RequestShape(200, 64), concurrency=2 * CAP, requests=1000)
    capacity_rps = full.e2e_s.size / full.duration_s
    found = [
        verdict_of([open_block(engine, load * capacity_rps, 800, seed)], confidence=0.95).regime
        for seed in range(BLOCKS)
    ]
    assert found.count(regime) >= BLOCKS - 1
