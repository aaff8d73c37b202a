"""Whole sweeps written down as speedups: what a report is made of, without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from orchestrator.analyse.pairs import SPEEDUPS, Pair, pair_of
from orchestrator.analyse.rung_figures import rung_of
from orchestrator.decide.sweep_result import SweepResult, sweep_result
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import decide_pairs
from orchestrator.measure.slo import SloBounds
from orchestrator.plan.deployment import Deployment, DeploymentPair, Speculation
from orchestrator.plan.trial import (
    Cell,
    LoadPoint,
    Protocol,
    Sampling,
    Trial,
    TrialKind,
    WorkloadRef,
)
from orchestrator.records import (
    Arm,
    BlockRecord,
    CounterSnapshot,
    EngineFacts,
    FailureClass,
    Outcome,
)
from tests.measure.records_by_hand import block, request

TTFT_S = 0.1
TOKENS = 51
"""Of every answer: one from the prefill and 50 steps."""


def blocks_of(
    index: int,
    ratio: float,
    *,
    level: int = 1,
    tpot_s: float = 0.02,
    ttft_ratio: float = 1.0,
    accepted_share: float | None = 0.5,
    samples: Mapping[Arm, dict[str, float]] | None = None,
    jitter: float = 1.0,
    prompts: str = "p",
) -> tuple[BlockRecord, BlockRecord]:
    """A pair of blocks whose time per token has this ratio; every request decodes 50 tokens."""
    made = []
    for arm, tpot, ttft in (
        ("baseline", tpot_s * jitter, TTFT_S * jitter),
        ("speculative", tpot_s * jitter / ratio, TTFT_S * jitter / ttft_ratio),
    ):
        asked = tuple(
            request(
                (ttft, ttft + tpot * (TOKENS - 1)),
                (1, TOKENS - 1),
                id=f"{prompts}{index}-{n}",
            )
            for n in range(level)
        )
        accepted = round(level * (TOKENS - 1) * (accepted_share or 0.0))
        drafts = level * (TOKENS - 1) - accepted
        counted = accepted_share is not None and arm == "speculative"
        made.append(
            block(
                *asked,
                arm="baseline" if arm == "baseline" else "speculative",
                duration_s=ttft + tpot * (TOKENS - 1),
                pair_index=index,
                position=(0 if arm == "baseline" else 1) ^ (index % 2),
                before=_counters(0, 0, 0, 0) if counted else None,
                after=_counters(drafts, 4 * drafts, accepted, level * TOKENS) if counted else None,
                samples=(samples[_arm(arm)],) if samples else (),
            )
        )
    return made[0], made[1]


def _arm(name: str) -> Arm:
    return "baseline" if name == "baseline" else "speculative"


def _counters(drafts: int, drafted: int, accepted: int, generated: int) -> CounterSnapshot:
    return CounterSnapshot(
        at_unix_s=1e9,
        replica_ids=("a",),
        drafts=drafts,
        draft_tokens=drafted,
        accepted_tokens=accepted,
        generation_tokens=generated,
    )


def trial_of(
    *,
    load: float = 1,
    mode: str = "closed",
    workload: str = "chat",
    k: int = 4,
    method: str = "ngram",
    draft: str | None = None,
    temperature: float = 0.0,
    kind: TrialKind = "comparison",
    metric: str = "speedup_throughput",
    engine: Mapping[str, Any] | None = None,
    seed: int = 0,
    pairs: tuple[int, int] = (3, 8),
) -> Trial:
    arguments = {"max_model_len": 1024, "max_num_seqs": 64, **(engine or {})}
    baseline = Deployment("target-8b", arguments)
    other = (
        Deployment("target-8b", arguments, replica_of=baseline.key)
        if kind == "aa_control"
        else Deployment("target-8b", arguments, Speculation(method, k, draft))
    )
    closed = mode == "closed"
    return Trial(
        kind=kind,
        pair=DeploymentPair(baseline, other),
        cell=Cell(
            method="none" if kind == "aa_control" else method,
            draft=draft,
            speculation_length=0 if kind == "aa_control" else k,
            batch_size=int(load) if closed else 64,
            sampling=Sampling(temperature),
            workload=WorkloadRef(workload, f"bundled:{workload}", f"hash-{workload}", TOKENS),
            load=LoadPoint("closed", concurrency=int(load))
            if closed
            else LoadPoint("open", rate_rps=load),
        ),
        protocol=Protocol(pairs_min=pairs[0], pairs_max=pairs[1], metric=metric),
        seed=seed,
    )


def result_of(
    trial: Trial,
    ratios: Sequence[float] | float = (),
    *,
    noise: float = 0.004,
    slo: SloBounds | None = None,
    failure: FailureClass | None = None,
    ended: bool = True,
    engines: bool = True,
    engine_version: str = "0.32.0",
    kv: Mapping[Arm, int] | None = None,
    **of_blocks: Any,
) -> TrialResult:
    """A trial that measured these ratios. One ratio stands for six pairs with `noise` around it."""
    if isinstance(ratios, float | int):
        rng = np.random.default_rng(int(ratios * 1000))
        ratios = [float(ratios * np.exp(x)) for x in rng.normal(0, noise, 6)]
    level = trial.cell.load.concurrency or 4
    blocks = [blocks_of(i, r, level=level, **of_blocks) for i, r in enumerate(ratios)]
    pairs: tuple[Pair, ...] = tuple(pair_of(*both, slo=slo) for both in blocks)
    outcome = Outcome(
        trial.id,
        "failed" if failure else "finished",
        failure=failure,
        cause="no room" if failure else None,
        pairs_measured=len(pairs),
        pairs_valid=len(pairs),
    )
    capacity = kv or {"baseline": 20000, "speculative": 18000}
    return TrialResult(
        trial=trial,
        outcome=outcome if ended else None,
        pairs=pairs,
        decisions={name: decide_pairs(pairs, trial.protocol, name) for name in SPEEDUPS},
        rung=rung_of(trial, list(zip(pairs, blocks, strict=True)), engine_cap=64),
        engines={
            arm: EngineFacts(
                "key",
                "vllm",
                engine_version,
                "target-8b",
                20.0 if arm == "baseline" else 25.0,
                kv_capacity_tokens=capacity[_arm(arm)],
            )
            for arm in ("baseline", "speculative")
        }
        if engines
        else {},
        started_unix_s=1e9 if pairs else None,
        ended_unix_s=1e9 + 60 if pairs else None,
    )


def control_of(ratio: float = 1.0, **more: Any) -> TrialResult:
    return result_of(trial_of(kind="aa_control", load=4), ratio, accepted_share=None, **more)


def sweep_of(
    *found: TrialResult,
    control: TrialResult | None = None,
    lengths: Mapping[str, float] | None = None,
    sources: Mapping[str, str] | None = None,
    **experiment: Any,
) -> SweepResult:
    """A sweep of these trials; with a control that finds nothing unless another one is given."""
    names = dict.fromkeys(trial.trial.cell.workload.name for trial in found)
    return sweep_result(manifest_of(names, lengths, sources, **experiment),
                        [control if control is not None else control_of(), *found])  # fmt: skip


def manifest_of(
    workloads: Mapping[str, Any],
    lengths: Mapping[str, float] | None = None,
    sources: Mapping[str, str] | None = None,
    **experiment: Any,
) -> dict[str, Any]:
    return {
        "name": "by-hand",
        "sweep_id": "0",
        "created_unix_s": 1e9,
        "folder": "by-hand",
        "simulated": False,
        "experiment": {"target": "target-8b", **experiment},
        "environment": {
            "accelerators": [{"model": "Test GPU", "memory_bytes": 10**10, "driver": "1"}],
            "packages": {"vllm": "0.32.0"},
            "product": {"revision": "abc", "modified": False, "version": "0.1.0"},
        },
        "models": {"target-8b": {"source": "hub", "revision": "rev1"}},
        "prompts": {
            name: {
                "name": name,
                "source": (sources or {}).get(name, f"/data/{name}.jsonl"),
                "prompts": 400,
                "tokens": {"median": (lengths or {}).get(name, 100.0)},
            }
            for name in workloads
        },
    }
