from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.measure.latency import (
    e2e_s,
    icl_s,
    itl_s,
    latency_of,
    send_lag_s,
    tpot_s,
    ttft_from_due_s,
    ttft_s,
)
from orchestrator.records import RequestError, RequestRecord
from tests.measure.records_by_hand import request


def test_a_timeline_drawn_by_hand() -> None:
    # due   sent  3 tokens     1 token  4 tokens
    #  |     |      |            |        |
    #  1.0   1.2    2.0          2.6      3.4        seconds
    drawn = request((2.0, 2.6, 3.4), (3, 1, 4), offset_s=1.0, sent_s=1.2)
    seen = latency_of(drawn)
    assert seen.send_lag_s == pytest.approx(0.2)
    assert seen.ttft_s == pytest.approx(0.8)
    assert seen.ttft_from_due_s == pytest.approx(1.0)
    assert seen.e2e_s == pytest.approx(2.2)
    assert seen.tpot_s == pytest.approx(1.4 / 7)  # 8 tokens, 1.4 s from the first to the last
    assert seen.itl_s == pytest.approx((0, 0, 0.6, 0.8, 0, 0, 0))
    assert seen.icl_s == pytest.approx((0.6, 0.8))


def test_one_token_has_a_first_token_but_no_time_per_token() -> None:
    single = request((1.5,), (1,), sent_s=1.0)
    assert ttft_s(single) == pytest.approx(0.5)
    assert tpot_s(single) is None
    assert itl_s(single) is None
    assert icl_s(single) is None
    assert e2e_s(single) == pytest.approx(0.5)


def test_no_token_at_all_defines_nothing() -> None:
    empty = latency_of(request((), (), output_tokens=0))
    assert (empty.ttft_s, empty.tpot_s, empty.itl_s, empty.icl_s, empty.e2e_s) == (None,) * 5


def test_all_tokens_in_one_chunk_arrive_without_gaps() -> None:
    whole = request((3.0,), (4,), sent_s=1.0)
    assert tpot_s(whole) == 0.0
    assert itl_s(whole) == (0.0, 0.0, 0.0)
    assert icl_s(whole) is None


def test_a_failed_request_keeps_its_first_token_but_has_no_end() -> None:
    cut = request((1.0, 2.0), (1, 1), error=RequestError.RESET)
    assert ttft_s(cut) == pytest.approx(1.0)
    assert e2e_s(cut) is None


def test_where_only_the_total_is_known_the_gaps_between_tokens_are_not() -> None:
    total_only = request((1.0, 1.5, 2.0), None, output_tokens=5)
    assert tpot_s(total_only) == pytest.approx(0.25)
    assert itl_s(total_only) is None
    assert icl_s(total_only) == pytest.approx((0.5, 0.5))


def test_chunks_that_contradict_usage_give_no_token_gaps() -> None:
    contradicting = request((1.0, 2.0), (1, 1), output_tokens=3)
    assert itl_s(contradicting) is None
    assert tpot_s(contradicting) == pytest.approx(0.5)


def test_a_chunk_without_tokens_is_neither_first_nor_last_token() -> None:
    # A role announcement comes at 0.5, an empty farewell at 9.
    padded = request((0.5, 1.0, 2.0, 9.0), (0, 1, 1, 0))
    assert ttft_s(padded) == pytest.approx(1.0)
    assert tpot_s(padded) == pytest.approx(1.0)
    assert e2e_s(padded) == pytest.approx(9.0)


def test_a_closed_loop_has_nothing_to_be_late_for() -> None:
    closed = request(offset_s=None)
    assert send_lag_s(closed) is None
    assert ttft_from_due_s(closed) is None


def test_a_request_never_sent_has_no_latency() -> None:
    never = request((), None, sent_s=None, offset_s=1.0, output_tokens=None)
    assert latency_of(never).ttft_s is None
    assert send_lag_s(never) is None


@st.composite
def answered(draw: st.DrawFn) -> RequestRecord:
    counts = draw(st.lists(st.integers(1, 6), min_size=1, max_size=20))
    gaps = draw(
        st.lists(st.floats(0, 5, allow_nan=False), min_size=len(counts), max_size=len(counts))
    )
    sent = draw(st.floats(0, 10))
    times, at = [], sent
    for gap in gaps:
        at += gap
        times.append(at)
    return request(tuple(times), tuple(counts), sent_s=sent)


@given(answered())
def test_the_mean_gap_between_tokens_is_the_time_per_token(record: RequestRecord) -> None:
    gaps, per_token = itl_s(record), tpot_s(record)
    if record.output_tokens == 1:
        assert gaps is None
        assert per_token is None
        return
    assert gaps is not None
    assert per_token is not None
    assert len(gaps) == (record.output_tokens or 0) - 1
    assert math.isclose(math.fsum(gaps) / len(gaps), per_token, rel_tol=1e-9, abs_tol=1e-12)


@given(answered())
def test_first_token_and_gaps_between_chunks_add_up_to_end_to_end(record: RequestRecord) -> None:
    first, end = ttft_s(record), e2e_s(record)
    assert first is not None
    assert end is not None
    assert math.isclose(first + math.fsum(icl_s(record) or ()), end, rel_tol=1e-9, abs_tol=1e-9)
    assert 0 <= first <= end
