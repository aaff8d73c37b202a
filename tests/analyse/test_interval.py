from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.boundaries import LookPlan
from orchestrator.analyse.further_pairs import pairs_needed
from orchestrator.analyse.interval import p_value_beyond, repeated_interval

PLAN = LookPlan(0.95, 6, 24)
ratios = st.lists(st.floats(-1, 1), min_size=6, max_size=24)


def noisy(mean: float, sd: float, pairs: int, seed: int = 1) -> list[float]:
    """Pairs with exactly this mean and standard deviation."""
    x = np.random.default_rng(seed).standard_normal(pairs)
    return list(mean + sd * (x - x.mean()) / x.std(ddof=1))


def test_before_the_first_look_there_is_no_interval() -> None:
    assert repeated_interval([0.1] * 5, PLAN) is None
    assert p_value_beyond([0.1] * 5, PLAN, 0.03) == 1.0


def test_an_interval_worked_out_by_hand() -> None:
    # Mean 0.1, s = 0.04; alternating pairs show no positive autocorrelation: rho = 0, so the
    # standard error is 0.04 / sqrt(24), and c(24) = 2.789.
    s = 0.04 * math.sqrt(23 / 24)
    seen = repeated_interval([0.1 + s, 0.1 - s] * 12, PLAN)
    assert seen is not None
    assert seen.assumed_autocorrelation == 0.0
    assert seen.standard_error == pytest.approx(0.04 / math.sqrt(24))
    assert seen.speedup == pytest.approx(math.exp(0.1))
    assert seen.low == pytest.approx(math.exp(0.1 - 2.789 * 0.008165), rel=1e-4)
    assert seen.high == pytest.approx(math.exp(0.1 + 2.789 * 0.008165), rel=1e-4)


def test_a_ratio_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        repeated_interval([0.0] * 5 + [math.inf], PLAN)


def test_pairs_without_noise_have_an_interval_without_width() -> None:
    seen = repeated_interval([0.2] * 6, PLAN)
    assert seen is not None
    assert seen.log_low == pytest.approx(0.2)
    assert seen.log_high == pytest.approx(0.2)
    assert p_value_beyond([0.2] * 6, PLAN, 0.03) < 1e-6


@given(ratios)
def test_exchanging_the_arms_mirrors_the_interval(x: list[float]) -> None:
    one, other = repeated_interval(x, PLAN), repeated_interval([-v for v in x], PLAN)
    assert one is not None
    assert other is not None
    assert one.log_low == pytest.approx(-other.log_high, abs=1e-12)
    assert one.low <= one.speedup * (1 + 1e-12)
    assert one.speedup <= one.high * (1 + 1e-12)


@given(ratios, st.floats(0.1, 10))
def test_the_interval_scales_with_the_noise(x: list[float], factor: float) -> None:
    one, other = repeated_interval(x, PLAN), repeated_interval([factor * v for v in x], PLAN)
    assert one is not None
    assert other is not None
    if one.spread > 1e-9:
        assert other.standard_error == pytest.approx(factor * one.standard_error, rel=1e-6)


def test_the_p_value_says_what_the_interval_says() -> None:
    for seed in range(40):
        x = noisy(0.08, 0.05, 12, seed)
        interval = repeated_interval(x, PLAN)
        assert interval is not None
        assert (p_value_beyond(x, PLAN, 0.03) <= 0.05) == (interval.log_low > 0.03)


def test_the_pairs_needed_decide_if_nothing_changes() -> None:
    x = noisy(0.08, 0.05, 8)
    interval = repeated_interval(x, PLAN)
    assert interval is not None
    assert interval.log_low < 0.03 < interval.log_high
    further = pairs_needed(interval, PLAN, 0.03)
    assert further is not None
    assert 1 <= further <= 40


def test_more_noise_needs_more_pairs() -> None:
    needed = []
    for sd in (0.05, 0.1, 0.2):
        interval = repeated_interval(noisy(0.08, sd, 8), PLAN)
        assert interval is not None
        needed.append(pairs_needed(interval, PLAN, 0.03))
    assert needed == sorted(needed, key=lambda n: n or math.inf)
    assert len(set(needed)) == 3


def test_at_the_margin_no_number_of_pairs_decides() -> None:
    interval = repeated_interval(noisy(0.03, 0.05, 8), PLAN)
    assert interval is not None
    assert pairs_needed(interval, PLAN, 0.03) is None
