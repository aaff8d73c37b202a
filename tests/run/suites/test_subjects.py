"""The engines under test, leased from a pool."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from orchestrator.adapters.local.telemetry import HostTelemetry
from orchestrator.adapters.simulated.in_process import SimulatedDeployer
from orchestrator.adapters.simulated.world import SimulatedWorld
from orchestrator.plan.deployment import Deployment, DeploymentPair, Speculation
from orchestrator.ports import Endpoint
from orchestrator.run.pool import Pool
from orchestrator.run.suites.subjects import LeasedSubjects

PAIR = DeploymentPair(Deployment("tiny", {}), Deployment("tiny", {}, Speculation("ngram", 2)))


class Local(SimulatedDeployer):
    """Says that its engines are `pids`."""

    pids: tuple[int, ...] = ()

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        endpoint = super().start(deployment, name=name, timeout_s=timeout_s)
        return replace(endpoint, pids=self.pids)


@pytest.mark.parametrize("pids", [(os.getpid(),), ()])
def test_memory_is_read_though_telemetry_needs_a_while(pids: tuple[int, ...]) -> None:
    deployer = Local(SimulatedWorld())
    deployer.pids = pids
    subjects = LeasedSubjects(Pool(deployer), PAIR, None, HostTelemetry(), holder="h")
    seen = subjects.rss_bytes("speculative")
    if pids:
        assert seen is not None and seen > 10e6
    else:
        assert seen is None
    subjects.close()
