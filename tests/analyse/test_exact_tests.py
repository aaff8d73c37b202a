"""Exact tests, against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from orchestrator.analyse.adjusted_p_values import benjamini_hochberg, holm
from orchestrator.analyse.exact_tests import fisher, mcnemar, proportion_interval

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_seven_prompts_against_none_are_one_in_128() -> None:
    assert mcnemar(7, 0, "greater") == pytest.approx(1 / 128)
    assert mcnemar(7, 0) == pytest.approx(2 / 128)
    assert mcnemar(0, 0) == 1.0


def test_fisher_tea() -> None:
    # Fisher's lady: 4 of 4 right is one in 70.
    assert fisher(4, 4, 0, 4, "greater") == pytest.approx(1 / 70)


def test_no_divergence_in_20_prompts() -> None:
    low, high = proportion_interval(20, 20, 0.90)
    assert (low, high) == (pytest.approx(0.05 ** (1 / 20)), 1.0)
    assert 1 - low == pytest.approx(0.139, abs=1e-3)


@given(st.integers(1, 40), st.data())
def test_the_interval_holds_the_proportion(of: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, of))
    low, high = proportion_interval(hits, of)
    assert 0 <= low <= hits / of <= high <= 1


@given(st.integers(1, 30), st.floats(0.01, 0.99))
def test_its_coverage_is_never_below_what_it_says(of: int, truth: float) -> None:
    covered = sum(
        stats.binom.pmf(hits, of, truth)
        for hits in range(of + 1)
        if proportion_interval(hits, of, 0.9)[0] <= truth <= proportion_interval(hits, of, 0.9)[1]
    )
    assert covered >= 0.9 - 1e-9


@given(st.integers(0, 30), st.integers(0, 30))
def test_mcnemar_is_symmetric(a: int, b: int) -> None:
    assert mcnemar(a, b) == pytest.approx(mcnemar(b, a))
    assert mcnemar(a, b, "greater") == pytest.approx(mcnemar(b, a, "less"))


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="0 <= hits <= of"):
        fisher(5, 4, 0, 4)
    with pytest.raises(ValueError, match="got 3 of 2"):
        proportion_interval(3, 2)
    with pytest.raises(ValueError, match=">= 0"):
        mcnemar(-1, 2)


def test_adjusted_by_hand() -> None:
    p = [0.01, 0.04, 0.03]
    assert holm(p) == pytest.approx((0.03, 0.06, 0.06))
    assert benjamini_hochberg(p) == pytest.approx((0.03, 0.04, 0.04))


@given(P_VALUES)
def test_adjusting_never_makes_smaller_and_keeps_the_order(p: list[float]) -> None:
    by_holm, by_bh = np.array(holm(p)), np.array(benjamini_hochberg(p))
    assert (by_holm <= 1).all() and (by_holm >= by_bh - 1e-12).all()
    assert (by_bh >= np.array(p) - 1e-12).all()
    order = np.argsort(p)
    assert (np.diff(by_holm[order]) >= 0).all() and (np.diff(by_bh[order]) >= 0).all()


@given(P_VALUES)
def test_bh_agrees_with_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(tuple(stats.false_discovery_control(p)))


def test_a_p_value_outside_the_range_is_refused() -> None:
    with pytest.raises(ValueError, match="0 <= p <= 1"):
        holm([0.1, 1.2])
