"""What an engine's steps spend their time on, from the differences of its own sums."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from orchestrator.records import BlockRecord, StageSums

StepKind = tuple[int, int]
"""(requests decoded together, context bucket)"""
_KEY = ("requests", "context", "prefill", "speculation_length")
_SUMS = tuple(field.name for field in fields(StageSums) if field.name not in _KEY)


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Means over decode steps: steps that read no prompt. Seconds per step.

    Formula: overhead_s = step_s - draft_s - verify_s - sample_s
    Undefined: `draft_s` None where the engine does not speculate.
    """

    steps: float
    requests: float
    """Decoded together, on average."""
    draft_s: float | None
    verify_s: float
    sample_s: float
    overhead_s: float
    step_s: float
    fallback_fraction: float | None
    """Steps for which the draft had nothing to propose, of all; None without speculation."""


def stage_sums(blocks: Iterable[BlockRecord]) -> tuple[StageSums, ...] | None:
    """The steps of these blocks of one arm, kind by kind.

    Undefined: None when no block has sums before and after, or none of them grew.
    """
    total: dict[tuple[int, int, bool, int], list[float]] = defaultdict(lambda: [0.0] * len(_SUMS))
    for block in blocks:
        for sums in _between(block):
            row = total[_key(sums)]
            for index, name in enumerate(_SUMS):
                row[index] += getattr(sums, name)
    if not total:
        return None
    return tuple(StageSums(*key, *row) for key, row in sorted(total.items()))


def _between(block: BlockRecord) -> list[StageSums]:
    before, after = block.counters_before, block.counters_after
    if before is None or after is None or before.stages is None or after.stages is None:
        return []
    known = {_key(sums): sums for sums in before.stages}
    grown = []
    for sums in after.stages:
        earlier = known.get(_key(sums))
        changes: dict[str, Any] = {
            name: getattr(sums, name) - (getattr(earlier, name) if earlier else 0.0)
            for name in _SUMS
        }
        if changes["steps"] < 0:
            return []  # a restart: validity says so
        if changes["steps"] > 0:
            grown.append(replace(sums, **changes))
    return grown


def _key(sums: StageSums) -> tuple[int, int, bool, int]:
    return sums.requests, sums.context, sums.prefill, sums.speculation_length


def stage_times(sums: Sequence[StageSums], *, speculative: bool) -> StageTimes | None:
    """Means over the decode steps among `sums`. Undefined: None when there is none."""
    decode = [each for each in sums if not each.prefill]
    steps = math.fsum(each.steps for each in decode)
    if steps <= 0:
        return None

    def mean(name: str) -> float:
        return math.fsum(getattr(each, name) for each in decode) / steps

    draft_s, verify_s, sample_s, step_s = map(mean, ("draft_s", "verify_s", "sample_s", "step_s"))
    silent = math.fsum(each.steps for each in decode if each.speculation_length == 0)
    return StageTimes(
        steps=steps,
        requests=math.fsum(each.requests * each.steps for each in decode) / steps,
        draft_s=draft_s if speculative else None,
        verify_s=verify_s,
        sample_s=sample_s,
        overhead_s=step_s - draft_s - verify_s - sample_s,
        step_s=step_s,
        fallback_fraction=silent / steps if speculative else None,
    )


def step_means(sums: Sequence[StageSums]) -> dict[StepKind, tuple[float, float]]:
    """(mean step_s, steps) of the decode steps of every kind."""
    seconds: dict[StepKind, float] = defaultdict(float)
    steps: dict[StepKind, float] = defaultdict(float)
    for each in sums:
        if not each.prefill:
            kind = each.requests, each.context
            seconds[kind] += each.step_s
            steps[kind] += each.steps
    return {kind: (seconds[kind] / count, count) for kind, count in steps.items() if count > 0}
