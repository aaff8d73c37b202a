"""What one running engine is, and the key that says when two are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from orchestrator.plan.identity import content_hash

SCHEDULE_OPTION = "num_speculative_tokens_per_batch_size"
"""vLLM's option that says how many tokens to draft at which batch size."""


WHAT_IF = "what_if"
"""The method that has no draft: how good and how dear one would be is set."""


@dataclass(frozen=True)
class Speculation:
    """One way to speculate: a single point, no lists.

    `method` is vLLM's name (ngram, suffix, draft_model, eagle, eagle3, mtp, medusa), or `what_if`,
    whose `draft` says what is supposed of one and whose `options` hold the same as numbers;
    `speculation_length` is K, tokens proposed per draft; `options` are the further fields of vLLM's
    `speculative_config` (`prompt_lookup_max`, …).
    """

    method: str
    speculation_length: int
    draft: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def draft_model(self) -> str | None:
        """The draft that has to be loaded, where there is one."""
        return None if self.method == WHAT_IF else self.draft

    def label(self) -> str:
        """Short name for tables: `ngram K=4`, `eagle(smollm2-135m-eagle) K=3`."""
        draft = f"({self.draft})" if self.draft else ""
        return f"{self.method}{draft} K={self.speculation_length}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "speculation_length": self.speculation_length,
            "draft": self.draft,
            "options": dict(sorted(self.options.items())),
        }


@dataclass(frozen=True)
class Deployment:
    """One running engine configuration. Two deployments with one `key` are interchangeable."""

    target: str
    """Catalogue name, Hugging Face id, or absolute path."""
    engine: Mapping[str, Any]
    """Engine arguments as vLLM spells them in Python (`max_model_len`, `dtype`, …)."""
    speculation: Speculation | None = None
    replica_of: str | None = None
    """Set on a relaunched copy (the A/A control) so that it is a process of its own."""

    @cached_property
    def key(self) -> str:
        return content_hash(self.as_dict())

    def label(self) -> str:
        name = "baseline" if self.speculation is None else self.speculation.label()
        if self.replica_of is None:
            return name
        # A server that somebody else started cannot be relaunched, only asked again.
        return f"{name} (again)" if "attached" in self.engine else f"{name} (relaunched)"

    def as_dict(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "engine": dict(sorted(self.engine.items())),
            "speculation": None if self.speculation is None else self.speculation.as_dict(),
            "replica_of": self.replica_of,
        }


@dataclass(frozen=True)
class DeploymentPair:
    """The two arms that a trial compares."""

    baseline: Deployment
    speculative: Deployment

    @cached_property
    def key(self) -> str:
        return content_hash([self.baseline.key, self.speculative.key])

    def of(self, arm: str) -> Deployment:
        return self.baseline if arm == "baseline" else self.speculative


def deployment_from(facts: Mapping[str, Any]) -> Deployment:
    """The deployment that `Deployment.as_dict` describes."""
    speculation = facts["speculation"]
    return Deployment(
        target=facts["target"],
        engine=dict(facts["engine"]),
        speculation=None if speculation is None else Speculation(**speculation),
        replica_of=facts["replica_of"],
    )
