"""The over-saturation test: hand-drawn timelines, then queues whose load is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analyse.growth import growth_in_flight, growth_of_ttft, timeline_of
from orchestrator.analyse.saturation import (
    Regime,
    achieved_over_offered,
    at_least,
    saturation_closed,
    saturation_open,
    verdict_of,
    was_turned_away,
)
from orchestrator.records import RequestError, RequestRecord
from tests.analyse.queues import queue, records, request


def every_second(count: int, answer_every_s: float) -> list[RequestRecord]:
    """One request a second; the server takes `answer_every_s` for each, one after the other."""
    made, free = [], 0.0
    for i in range(count):
        start = max(float(i), free)
        free = start + answer_every_s
        made.append(request(i, float(i), start + answer_every_s / 2, free))
    return made


def test_growth_at_double_load_is_known() -> None:
    """One request a second, two seconds each: every other request stays, the wait grows 1 s/s."""
    timeline = timeline_of(every_second(100, 2.0))
    in_flight = growth_in_flight([timeline], 0.95)
    wait = growth_of_ttft([timeline], 0.95)
    assert in_flight is not None and wait is not None
    assert in_flight.rate == pytest.approx(0.5, abs=0.02)
    assert wait.rate == pytest.approx(1.0)
    assert wait.low == pytest.approx(1.0)


def test_growth_at_half_load_is_none() -> None:
    """One request a second, half a second each: nothing is ever left over."""
    timeline = timeline_of(every_second(100, 0.5))
    in_flight = growth_in_flight([timeline], 0.95)
    wait = growth_of_ttft([timeline], 0.95)
    assert in_flight is not None and (in_flight.rate, in_flight.low) == (0.0, 0.0)
    assert wait is not None and wait.rate == pytest.approx(0.0, abs=1e-12)
    assert saturation_open([every_second(100, 0.5)]).regime is Regime.STEADY


def test_filling_an_empty_server_is_not_growth() -> None:
    """Answers take 10 s, any number at once: in flight rises 0..10, then stays."""
    block = [request(i, float(i), i + 0.5, i + 10.0) for i in range(100)]
    growth = growth_in_flight([timeline_of(block)], 0.95)
    assert growth is not None and growth.rate == 0.0
    assert saturation_open([block]).regime is Regime.STEADY


def test_a_batch_that_fills_up_without_a_wait_is_not_saturated() -> None:
    """In flight grows since answers get longer, but every first token comes after 0.5 s."""
    block = [request(i, float(i), i + 0.5, 2.0 + 1.5 * i) for i in range(200)]
    found = saturation_open([block])
    assert found.in_flight is not None and found.in_flight.low > 0.2
    assert found.regime is Regime.UNDECIDED and not found.saturated
    assert "may still be filling up" in found.why


def test_blocks_shorter_than_their_answers_decide_nothing() -> None:
    block = [request(i, float(i), i + 30.0, i + 60.0) for i in range(32)]
    found = saturation_open([block] * 6)
    assert found.regime is Regime.UNDECIDED
    assert "longer blocks" in found.why


def test_growth_within_chance_decides_nothing() -> None:
    """Of 40 requests, two a stretch more stay in every other stretch: t = 1, no proof."""
    block = every_second(40, 1.0)
    late = [replace(r, end_s=99.0) if i in (20, 35) else r for i, r in enumerate(block)]
    found = saturation_open([late])
    assert found.in_flight is not None and found.in_flight.rate > 0.05 > found.in_flight.low
    assert found.regime is Regime.UNDECIDED
    assert "chance explains" in found.why


def test_an_empty_block_decides_nothing() -> None:
    assert saturation_open([[]]).regime is Regime.UNDECIDED
    assert saturation_open([]).regime is Regime.UNDECIDED


def test_a_server_that_turns_requests_away_is_saturated_though_no_queue_grows() -> None:
    """40 of 200 requests get a 503 at once: at least 15 % with 95 % confidence."""
    block = every_second(200, 0.5)
    for i in range(0, 200, 5):
        refused = request(
            i, float(i), None, i + 0.01, error=RequestError.HTTP_STATUS, http_status=503
        )
        block[i] = refused
    found = saturation_open([block])
    assert found.saturated and found.turned_away == 40
    assert "40 of 200 requests were turned away" in found.why
    assert found.achieved_over_offered == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(
    ("error", "status", "for_want_of_capacity"),
    [
        (None, 200, False),
        (RequestError.HTTP_STATUS, 429, True),
        (RequestError.HTTP_STATUS, 400, False),
        (RequestError.FIRST_TOKEN_TIMEOUT, None, True),
        (RequestError.CANCELLED, None, False),
        (RequestError.RESET, None, False),
    ],
)
def test_turned_away(
    error: RequestError | None, status: int | None, for_want_of_capacity: bool
) -> None:
    made = request(0, 0.0, 1.0, 2.0, error=error, http_status=status)
    assert was_turned_away(made) is for_want_of_capacity


def test_lower_bound_of_a_proportion() -> None:
    """All 10 of 10: p^10 = 0.05 at p = 0.741. None of 10: 0."""
    assert at_least(10, 10, 0.95) == pytest.approx(0.05**0.1)
    assert at_least(0, 10, 0.95) == 0.0


def test_achieved_over_offered() -> None:
    """Due at 0..9 s; the server ends one every 2 s: 9 in 18 s where 9 came in 9 s."""
    assert achieved_over_offered([every_second(10, 2.0)]) == pytest.approx(0.5)


def test_the_tail_of_a_block_does_not_count_against_it() -> None:
    """Ten answers of 5 s each, all in time: the block lasts 14 s, but nothing fell behind."""
    block = [request(i, float(i), i + 1.0, i + 5.0) for i in range(10)]
    assert achieved_over_offered([block]) == pytest.approx(1.0)


def test_nothing_is_achieved_over_offered_in_a_closed_loop() -> None:
    closed = [replace(r, offset_s=None) for r in every_second(10, 1.0)]
    assert achieved_over_offered([closed]) is None
    assert achieved_over_offered([[]]) is None


def test_a_cancelled_request_never_left() -> None:
    cancelled = request(0, 0.0, 1.0, 2.0, error=RequestError.CANCELLED)
    assert np.isinf(timeline_of([cancelled]).left_s).all()


def test_closed_loops_queue_but_do_not_saturate() -> None:
    queueing = saturation_closed(32, 16)
    assert queueing.regime is Regime.QUEUEING and not queueing.saturated
    assert queueing.why == "32 in flight, the engine runs 16 at once: 16 wait"
    assert saturation_closed(16, 16).regime is Regime.STEADY
    assert saturation_closed(16, None).regime is Regime.UNDECIDED


def test_confidence_must_be_one() -> None:
    with pytest.raises(ValueError, match=r"0.5 < confidence < 1"):
        saturation_open([], confidence=1.0)


SEEDS = 200


def share_saturated(load: float, *, requests: int, blocks: int, service: str) -> float:
    found = [
        verdict_of(
            [
                queue(1000 * seed + b, requests, load, service=service)  # type: ignore[arg-type]
                for b in range(blocks)
            ],
            confidence=0.95,
        ).saturated
        for seed in range(SEEDS)
    ]
    return sum(found) / SEEDS


@pytest.mark.slow
@pytest.mark.parametrize(("requests", "blocks"), [(32, 6), (64, 12), (400, 1)])
@pytest.mark.parametrize("service", ["exponential", "constant"])
def test_false_alarms_at_80_percent(requests: int, blocks: int, service: str) -> None:
    """At most 2 % of rungs at 80 % of capacity are called saturated, short blocks or long."""
    assert share_saturated(0.8, requests=requests, blocks=blocks, service=service) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requests", "blocks", "service", "at_least_share"),
    [
        (64, 12, "constant", 0.90),
        (800, 1, "constant", 0.90),
        (64, 12, "exponential", 0.65),
        (1200, 1, "exponential", 0.85),
    ],
)
def test_detection_at_120_percent(
    requests: int, blocks: int, service: str, at_least_share: float
) -> None:
    """Fixed-length answers are the constant service; exponential is the hardest there is."""
    detected = share_saturated(1.2, requests=requests, blocks=blocks, service=service)
    assert detected >= at_least_share


def test_records_and_timelines_agree() -> None:
    timeline = queue(3, 400, 2.0)
    found = saturation_open([records(timeline)])
    assert found.saturated
    assert found.in_flight == verdict_of([timeline], confidence=0.95).in_flight
    assert found.achieved_over_offered == pytest.approx(
        np.ptp(timeline.came_s) / np.ptp(timeline.left_s)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.2, 3.0), st.floats(0.01, 100.0))
def test_the_finding_does_not_depend_on_the_unit_of_time(
    seed: int, load: float, scale: float
) -> None:
    t = queue(seed, 120, load)
    scaled = replace(
        t,
        came_s=t.came_s * scale,
        first_token_s=t.first_token_s * scale,
        left_s=t.left_s * scale,
    )
    here, there = (verdict_of([x], confidence=0.95) for x in (t, scaled))
    assert here.regime is there.regime
    if here.ttft is not None and there.ttft is not None:
        assert there.ttft.rate == pytest.approx(here.ttft.rate, abs=1e-6)
