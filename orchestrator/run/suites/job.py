"""One suite on one deployment pair: what is to be run, and the hash that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.plan.arms import relaunched
from orchestrator.plan.deployment import Deployment, DeploymentPair, deployment_from
from orchestrator.plan.identity import content_hash
from orchestrator.plan.trial import Trial
from orchestrator.records import SCHEMA_VERSION


@dataclass(frozen=True)
class SuiteJob:
    """`settings` are the suite's own (`Suite.settings`)."""

    suite: str
    pair: DeploymentPair
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return content_hash(self.identity())

    @property
    def again(self) -> Deployment:
        """The baseline as a process of its own: the one that the A/A control uses."""
        return relaunched(self.pair.baseline)

    def label(self) -> str:
        return f"{self.suite} · {self.pair.speculative.label()}"

    def identity(self) -> dict[str, Any]:
        """Everything that determines what is sent and to whom."""
        return {
            "schema": SCHEMA_VERSION,
            "suite": self.suite,
            "baseline": self.pair.baseline.as_dict(),
            "speculative": self.pair.speculative.as_dict(),
            "seed": self.seed,
            "settings": dict(self.settings),
        }


def suite_job_from(identity: Mapping[str, Any]) -> SuiteJob:
    """The job that `SuiteJob.identity` describes. Raises: KeyError, TypeError."""
    return SuiteJob(
        suite=identity["suite"],
        pair=DeploymentPair(
            deployment_from(identity["baseline"]), deployment_from(identity["speculative"])
        ),
        seed=identity["seed"],
        settings=identity["settings"],
    )


def compared_pairs(trials: Sequence[Trial]) -> tuple[DeploymentPair, ...]:
    """The distinct pairs that are compared, in the plan's order; the control is none of them."""
    pairs = {trial.pair.key: trial.pair for trial in trials if trial.kind == "comparison"}
    return tuple(pairs.values())
