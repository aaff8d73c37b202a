from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.switch.guard.acceptance import (
    LINES,
    RequestWeight,
    UsualAcceptance,
    tell_floor,
)
from orchestrator.switch.guard.check import ACCEPTANCE_WORTH, Check
from orchestrator.switch.guard.settings import AcceptanceLimits
from orchestrator.switch.guard.usual import Usual


def test_quantiles_of_a_hundred_even_values() -> None:
    usual = Usual(half_life_s=1e9)
    usual.add(0.0, [i / 100 + 0.005 for i in range(100)])
    assert usual.weight == 100
    assert usual.quantiles((0.2, 0.5)) == pytest.approx((0.2, 0.5))


def test_what_is_old_counts_half_after_each_half_life() -> None:
    usual = Usual(half_life_s=100.0)
    usual.add(0.0, [0.905] * 40)
    usual.add(200.0, [0.105] * 10)
    assert usual.weight == pytest.approx(20)
    assert usual.quantiles((0.49,))[0] < 0.11
    assert usual.quantiles((0.51,))[0] > 0.9


def test_a_year_without_traffic_does_not_overflow() -> None:
    usual = Usual(half_life_s=60.0)
    usual.add(0.0, [0.9] * 500)
    usual.add(3.2e7, [0.3])
    assert usual.weight == pytest.approx(1.0)
    assert usual.quantiles((0.5,))[0] == pytest.approx(0.3, abs=0.01)


def test_of_nothing_there_is_no_quantile() -> None:
    with pytest.raises(ValueError, match="nothing was added"):
        Usual(60.0).quantiles((0.5,))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0, 1e5))
def test_a_snapshot_brings_it_back(values: list[float], later_s: float) -> None:
    usual, again = Usual(1e4), Usual(1e4)
    usual.add(0.0, values)
    usual.add(later_s, values)
    again.restore(usual.snapshot())
    assert again.weight == pytest.approx(usual.weight, abs=0.1)
    assert again.snapshot()["weights"] == pytest.approx(usual.snapshot()["weights"], abs=0.002)


@pytest.mark.parametrize("kept", [{}, {"at_s": 0, "weights": {"100": 1}}, {"weights": []}])
def test_what_is_no_snapshot_is_refused(kept: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError, TypeError, AttributeError)):
        Usual(1.0).restore(kept)


def test_lines_come_with_enough_requests_and_lie_where_a_borne_fall_would_leave_them() -> None:
    limits = AcceptanceLimits(drop_to=0.5, learn_requests=100, half_life_s=1e9)
    usual = UsualAcceptance(limits)
    for i in range(99):
        usual.learn(i / 100 + 0.005)
    usual.close(0.0, suspected=False)
    assert usual.lines == ()
    usual.learn(0.995)
    usual.learn(0.985)
    usual.close(5.0, suspected=False)
    assert [line.at for line in usual.lines] == pytest.approx([0.5 * q for q in LINES], abs=0.01)
    # The error of a quantile of 100: 1.5 * sqrt(0.2 * 0.8 / 100) = 0.06.
    assert usual.lines[0].allowed == pytest.approx(0.26)


def test_what_is_suspected_is_not_learned() -> None:
    usual = UsualAcceptance(AcceptanceLimits())
    usual.learn(0.1)
    usual.close(0.0, suspected=True)
    assert usual.distribution.weight == 0


def test_no_drop_is_a_breach_where_the_setting_is_null() -> None:
    usual = UsualAcceptance(AcceptanceLimits(drop_to=None))
    for _ in range(500):
        usual.learn(0.5)
    usual.close(0.0, suspected=False)
    assert usual.lines == ()


def test_short_answers_weigh_as_little_as_they_have_tokens() -> None:
    weight = RequestWeight()
    assert [weight.of(100), weight.of(50)] == pytest.approx([1.0, 0.5])
    assert weight.of(1000) == 1.0


@given(st.floats(0.05, 0.95), st.floats(0.0, 1.0))
def test_acceptance_at_the_floor_is_no_evidence(floor: float, weight: float) -> None:
    check = Check("acceptance_floor", weight=1.0, worth=ACCEPTANCE_WORTH)
    for _ in range(50):
        tell_floor(check, floor, floor, weight)
        check.close(0.0)
    assert abs(check.log_evidence) < 1e-6
