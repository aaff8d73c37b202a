"""Experiments, facts and plans for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.plan.block import Prompt
from orchestrator.plan.expand import make_plan
from orchestrator.plan.facts import ClusterFacts, ModelFacts, PromptSetFacts
from orchestrator.plan.plan import Notice, Plan
from orchestrator.spec.experiment import Experiment

NGRAM = {"method": "ngram", "speculation_length": [2, 4]}
CHAT = {"name": "chat", "prompts": "bundled:chat", "output_tokens": 32}


def experiment(
    *,
    speculation: list[dict[str, Any]] | None = None,
    workloads: list[dict[str, Any]] | None = None,
    batch_size: Any = None,
    temperature: Any = 0.0,
    **sections: Any,
) -> Experiment:
    return Experiment.model_validate(
        {
            "name": "test",
            "target": "tiny",
            "sweep": {
                "speculation": speculation or [NGRAM],
                "batch_size": batch_size,
                "temperature": temperature,
            },
            "workloads": workloads or [CHAT],
            **sections,
        }
    )


def facts_for(spec: Experiment, *, count: int = 10_000, longest: int = 100) -> dict[str, Any]:
    """One set of prompts per source, all of them `longest` tokens, one turn."""
    return {
        workload.name: PromptSetFacts(
            count, f"hash of {workload.prompts}", longest, longest, longest, ((1, longest),)
        )
        for workload in spec.workloads
    }


def plan(
    spec: Experiment,
    *,
    count: int = 10_000,
    longest: int = 100,
    models: Mapping[str, ModelFacts] | None = None,
    cluster: ClusterFacts = ClusterFacts(gpus=8, cpus=64),  # noqa: B008
    prompt_sets: Mapping[str, PromptSetFacts] | None = None,
) -> Plan:
    known = (
        prompt_sets if prompt_sets is not None else facts_for(spec, count=count, longest=longest)
    )
    return make_plan(spec, prompt_sets=known, models=models, cluster=cluster)


def notice(planned: Plan, rule: str) -> Notice:
    (found,) = [notice for notice in planned.notices if notice.rule == rule]
    return found


def rules(planned: Plan) -> set[str]:
    return {notice.rule for notice in planned.notices}


def left_out(planned: Plan) -> set[tuple[str, str]]:
    """(cell's label up to the batch size, rule)."""
    return {
        (f"{item.cell.method} K={item.cell.speculation_length}", item.rule)
        for item in planned.skipped
    }


def prompts(count: int, categories: int = 1) -> tuple[Prompt, ...]:
    return tuple(Prompt(f"p{i}", f"c{i % categories}", (f"question {i}",)) for i in range(count))
