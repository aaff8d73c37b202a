from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.measure.acceptance import (
    acceptance_between,
    expected_acceptance_length,
    implied_acceptance_probability,
)
from tests.measure.records_by_hand import counters


def test_a_window_worked_out_by_hand() -> None:
    # 100 drafts of 3 tokens; 80, 60 and 30 of them were accepted at positions 0, 1, 2.
    before = counters(
        drafts=10, draft_tokens=30, accepted_tokens=17, accepted_per_position=(8, 6, 3)
    )
    after = counters(
        drafts=110, draft_tokens=330, accepted_tokens=187, accepted_per_position=(88, 66, 33)
    )
    seen = acceptance_between(before, after)
    assert seen is not None
    assert (seen.drafts, seen.draft_tokens, seen.accepted_tokens) == (100, 300, 170)
    assert seen.acceptance_rate == pytest.approx(170 / 300)
    assert seen.acceptance_length == pytest.approx(2.7)
    assert seen.per_position_acceptance_rate == pytest.approx((0.8, 0.6, 0.3))
    assert seen.conditional_acceptance_rate == pytest.approx((0.8, 0.75, 0.5))


def test_a_server_without_counters_has_no_acceptance() -> None:
    assert acceptance_between(counters(), counters()) is None
    assert acceptance_between(None, counters(drafts=1)) is None


def test_no_drafts_in_the_window_is_undefined_and_not_zero() -> None:
    same = counters(drafts=5, draft_tokens=10, accepted_tokens=3, accepted_per_position=(2, 1))
    seen = acceptance_between(same, same)
    assert seen is not None
    assert seen.drafts == 0
    assert seen.acceptance_rate is None
    assert seen.acceptance_length is None
    assert seen.per_position_acceptance_rate is None


def test_drafts_that_were_all_rejected_are_zero_and_not_undefined() -> None:
    seen = acceptance_between(
        counters(drafts=0, draft_tokens=0, accepted_tokens=0, accepted_per_position=(0, 0)),
        counters(drafts=4, draft_tokens=8, accepted_tokens=0, accepted_per_position=(0, 0)),
    )
    assert seen is not None
    assert seen.acceptance_rate == 0.0
    assert seen.acceptance_length == 1.0
    assert seen.conditional_acceptance_rate == (0.0, None)


def test_positions_appear_when_first_accepted() -> None:
    seen = acceptance_between(
        counters(drafts=0, draft_tokens=0, accepted_tokens=0),
        counters(drafts=2, draft_tokens=4, accepted_tokens=3, accepted_per_position=(2, 1)),
    )
    assert seen is not None
    assert seen.per_position_acceptance_rate == (1.0, 0.5)


def test_a_counter_that_runs_backwards_is_undefined() -> None:
    assert acceptance_between(counters(drafts=9), counters(drafts=2)) is None


@pytest.mark.parametrize(
    ("a", "k", "length"),
    [(0.0, 4, 1.0), (0.5, 1, 1.5), (0.5, 2, 1.75), (0.8, 3, 2.952), (1.0, 5, 6.0), (0.7, 0, 1.0)],
)
def test_known_lengths_of_the_iid_model(a: float, k: int, length: float) -> None:
    assert expected_acceptance_length(a, k) == pytest.approx(length)


def test_the_inverse_is_not_one_minus_one_over_length() -> None:
    # K = 3 and a = 0.8 give 2.952; 1 - 1/2.952 would say 0.66.
    assert implied_acceptance_probability(2.952, 3) == pytest.approx(0.8)


def test_no_probability_gives_an_impossible_length() -> None:
    assert implied_acceptance_probability(0.9, 3) is None
    assert implied_acceptance_probability(4.1, 3) is None
    assert implied_acceptance_probability(1.0, 0) is None


@pytest.mark.parametrize(("a", "k"), [(-0.1, 2), (1.1, 2), (0.5, -1)])
def test_what_is_no_probability_or_length_is_refused(a: float, k: int) -> None:
    with pytest.raises(ValueError, match="but got"):
        expected_acceptance_length(a, k)


@given(st.floats(0, 1), st.integers(1, 32))
def test_inverting_the_model_gives_its_probability_back(a: float, k: int) -> None:
    length = expected_acceptance_length(a, k)
    back = implied_acceptance_probability(length, k)
    assert back is not None
    assert 0 <= back <= 1
    # Long drafts make the length insensitive to a small `a` only in the last digits.
    assert back == pytest.approx(a, abs=1e-9)
    assert 1 <= length <= k + 1


@given(
    st.integers(1, 8).flatmap(
        lambda k: st.lists(st.integers(0, k), min_size=1, max_size=60).map(lambda n: (k, n))
    )
)
def test_rates_of_any_course_of_drafts(course: tuple[int, list[int]]) -> None:
    k, accepted = course
    per_position = tuple(float(sum(n > i for n in accepted)) for i in range(k))
    seen = acceptance_between(
        counters(drafts=0, draft_tokens=0, accepted_tokens=0, accepted_per_position=(0.0,) * k),
        counters(
            drafts=len(accepted),
            draft_tokens=k * len(accepted),
            accepted_tokens=sum(accepted),
            accepted_per_position=per_position,
        ),
    )
    assert seen is not None
    assert seen.acceptance_rate is not None
    assert seen.acceptance_length is not None
    assert seen.per_position_acceptance_rate is not None
    assert 0 <= seen.acceptance_rate <= 1
    assert 1 <= seen.acceptance_length <= k + 1
    rates = seen.per_position_acceptance_rate
    assert all(a >= b for a, b in pairwise(rates))
    assert 1 + sum(rates) == pytest.approx(seen.acceptance_length)
    assert all(c is None or 0 <= c <= 1 for c in seen.conditional_acceptance_rate or ())
