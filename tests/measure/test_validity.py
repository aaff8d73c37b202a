from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.measure.validity import Finding, ValidityBounds, invalid_reasons
from orchestrator.records import BlockRecord, InvalidReason, RequestError
from tests.measure.records_by_hand import HEALTHY, block, counters, request

GOOD = request((1.0, 2.0), (1, 99))  # 100 tokens


def only(record: BlockRecord, *, fixed_length: bool = False) -> Finding:
    findings = invalid_reasons(record, fixed_length=fixed_length)
    assert len(findings) == 1, findings
    return findings[0]


def test_a_healthy_block_is_valid() -> None:
    seen = block(
        GOOD,
        before=counters(generation_tokens=1000, drafts=5),
        after=counters(generation_tokens=1100, drafts=9),
        samples=({"gpu_throttled": 0.0, "host_foreign_cpu_fraction": 0.1},),
    )
    assert invalid_reasons(seen, fixed_length=True) == ()


def test_a_client_that_sends_late_in_an_open_loop() -> None:
    late = request(offset_s=1.0, sent_s=1.025)
    finding = only(block(late))
    assert finding.reason is InvalidReason.CLIENT_LATE
    assert finding.sentence == (
        "99 % of requests were sent within 0.0250 s of their time; the bound is 0.01 s"
    )


def test_a_closed_loop_is_never_late() -> None:
    assert invalid_reasons(block(GOOD, client=replace(HEALTHY, send_lag_p99_s=5.0))) == ()


def test_an_event_loop_that_wakes_late() -> None:
    finding = only(block(GOOD, client=replace(HEALTHY, loop_lag_p99_s=0.05)))
    assert finding.reason is InvalidReason.CLIENT_LOOP_LAG


def test_a_client_that_uses_its_core_up() -> None:
    finding = only(block(GOOD, client=replace(HEALTHY, cpu_fraction=0.93)))
    assert finding.reason is InvalidReason.CLIENT_CPU
    assert "0.93 of a core; the bound is 0.8" in finding.sentence


def test_what_was_not_observed_is_not_held_against_a_block() -> None:
    blind = replace(HEALTHY, loop_lag_p99_s=None, cpu_fraction=None, send_lag_p99_s=None)
    assert invalid_reasons(block(GOOD, client=blind)) == ()


def test_a_bound_of_none_is_not_checked() -> None:
    busy = block(GOOD, client=replace(HEALTHY, cpu_fraction=0.99))
    assert invalid_reasons(busy, ValidityBounds(client_cpu_fraction=None)) == ()


def test_a_counter_that_disagrees_with_usage() -> None:
    seen = block(GOOD, before=counters(generation_tokens=0), after=counters(generation_tokens=150))
    finding = only(seen)
    assert finding.reason is InvalidReason.COUNTERS_INCONSISTENT
    assert "counted 150 generated tokens, its usage says 100" in finding.sentence


def test_a_small_disagreement_is_tolerated() -> None:
    seen = block(GOOD, before=counters(generation_tokens=0), after=counters(generation_tokens=108))
    assert invalid_reasons(seen) == ()


def test_a_failed_request_excuses_the_counter() -> None:
    cut = request((1.0,), (1,), id="cut", output_tokens=None, error=RequestError.TRUNCATED)
    seen = block(
        GOOD, cut, before=counters(generation_tokens=0), after=counters(generation_tokens=150)
    )
    assert invalid_reasons(seen) == ()


def test_more_accepted_than_proposed_cannot_be() -> None:
    seen = block(
        GOOD,
        before=counters(draft_tokens=0, accepted_tokens=0),
        after=counters(draft_tokens=10, accepted_tokens=11),
    )
    assert only(seen).reason is InvalidReason.COUNTERS_INCONSISTENT


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (counters(), counters(replica_ids=("b",)), "were a before the block and b after"),
        (counters(), counters(replica_ids=()), "and none after"),
        (counters(drafts=9), counters(drafts=2), "drafts went back from 9 to 2"),
    ],
)
def test_an_engine_that_restarted(before: object, after: object, words: str) -> None:
    finding = only(replace(block(GOOD), counters_before=before, counters_after=after))  # type: ignore[arg-type]
    assert finding.reason is InvalidReason.ENGINE_RESTARTED
    assert words in finding.sentence


def test_a_gauge_may_go_down() -> None:
    seen = block(GOOD, before=counters(kv_cache_usage=0.9), after=counters(kv_cache_usage=0.1))
    assert invalid_reasons(seen) == ()


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("gpu_throttled", InvalidReason.DEVICE_THROTTLED),
        ("gpu_clock_changed", InvalidReason.DEVICE_CLOCK_CHANGED),
        ("gpu_foreign_processes", InvalidReason.DEVICE_SHARED),
    ],
)
def test_a_device_in_trouble(key: str, reason: InvalidReason) -> None:
    finding = only(block(GOOD, samples=({key: 0.0}, {key: 2.0}, {key: 0.0})))
    assert finding.reason is reason
    assert "in 1 of 3 samples" in finding.sentence


def test_a_host_that_is_busy_with_something_else() -> None:
    key = "host_foreign_cpu_fraction"
    finding = only(block(GOOD, samples=({key: 0.2}, {key: 1.4})))
    assert finding.reason is InvalidReason.HOST_BUSY
    assert finding.sentence == "other processes kept 0.80 cores busy on average; the bound is 0.5"


def test_nothing_completed() -> None:
    failed = request((), None, output_tokens=None, error=RequestError.CONNECT)
    assert only(block(failed)).reason is InvalidReason.NOTHING_COMPLETED


def test_an_answer_of_another_length_than_ordered() -> None:
    short = request((1.0, 2.0), (1, 30), id="short", max_tokens=64)
    finding = only(block(GOOD, short), fixed_length=True)
    assert finding.reason is InvalidReason.LENGTHS_DIFFER
    assert "short has 31 tokens, 64 were ordered" in finding.sentence
    assert invalid_reasons(block(GOOD, short), fixed_length=False) == ()


def test_every_reason_is_given() -> None:
    seen = block(
        request(offset_s=0.0, sent_s=1.0),
        client=replace(HEALTHY, cpu_fraction=1.0),
        samples=({"gpu_throttled": 1.0},),
    )
    assert [finding.reason for finding in invalid_reasons(seen)] == [
        InvalidReason.CLIENT_LATE,
        InvalidReason.CLIENT_CPU,
        InvalidReason.DEVICE_THROTTLED,
    ]
