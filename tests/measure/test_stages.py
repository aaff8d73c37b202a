from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.measure.stages import stage_sums, stage_times, step_means
from orchestrator.records import BlockRecord, ClientHealth, CounterSnapshot, StageSums

HEALTHY = ClientHealth(None, None, None, None, None)


def sums(
    requests: int = 1,
    context: int = 64,
    *,
    prefill: bool = False,
    k: int = 0,
    steps: float = 10,
    draft_s: float = 0.0,
    verify_s: float = 0.5,
    sample_s: float = 0.1,
    step_s: float = 1.0,
) -> StageSums:
    return StageSums(
        requests, context, prefill, k, steps, draft_s, verify_s, sample_s, step_s, 0.1, steps
    )


def block(
    before: tuple[StageSums, ...] | None, after: tuple[StageSums, ...] | None, **counted: float
) -> BlockRecord:
    first = CounterSnapshot(0.0, stages=before, accepted_tokens=0.0)
    last = CounterSnapshot(1.0, stages=after, accepted_tokens=counted.get("accepted", 0.0))
    return BlockRecord("t", 0, "baseline", 0, "measured", 0.0, 1.0, (), HEALTHY, first, last)


def test_sums_are_differenced_kind_by_kind_and_added_over_blocks() -> None:
    one = block((sums(steps=10, step_s=1.0),), (sums(steps=14, step_s=1.6), sums(2, steps=3)))
    two = block((sums(steps=14, step_s=1.6),), (sums(steps=15, step_s=1.7), sums(2, steps=3)))
    found = stage_sums([one, two])
    assert found is not None
    assert [(each.requests, each.steps) for each in found] == [(1, 5), (2, 6)]
    assert found[0].step_s == pytest.approx(0.7)


def test_what_was_not_said_is_undefined() -> None:
    assert stage_sums([]) is None
    assert stage_sums([block(None, (sums(),))]) is None
    assert stage_sums([block((sums(),), (sums(),))]) is None, "nothing grew"
    assert stage_sums([block((sums(steps=9),), (sums(steps=4),))]) is None, "a restart"


def test_means_are_of_decode_steps_and_overhead_is_the_rest() -> None:
    found = [
        sums(k=4, steps=6, draft_s=0.06, verify_s=0.30, sample_s=0.06, step_s=0.60),
        sums(k=0, steps=4, draft_s=0.02, verify_s=0.10, sample_s=0.02, step_s=0.20),
        sums(8, prefill=True, steps=100, step_s=100),
    ]
    times = stage_times(found, speculative=True)
    assert times is not None
    assert times.steps == 10
    assert times.draft_s == pytest.approx(0.008)
    assert times.step_s == pytest.approx(0.08)
    assert times.overhead_s == pytest.approx(0.08 - 0.008 - 0.04 - 0.008)
    assert times.fallback_fraction == pytest.approx(0.4)
    baseline = stage_times(found, speculative=False)
    assert baseline is not None
    assert (baseline.draft_s, baseline.fallback_fraction) == (None, None)
    assert stage_times([replace(found[0], prefill=True)], speculative=True) is None


def test_step_means_are_by_batch_and_context() -> None:
    found = [sums(1, 64, k=4, steps=3, step_s=0.6), sums(1, 64, steps=1, step_s=0.1), sums(4, 128)]
    assert step_means(found) == {
        (1, 64): (pytest.approx(0.175), 4),
        (4, 128): (pytest.approx(0.1), 10),
    }
