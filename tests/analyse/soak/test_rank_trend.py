"""Trends by ranks: worked examples, and how often noise that remembers is taken for one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analyse.soak.rank_trend import FloatArray, rank_trend, variance_inflation


def ar1(rng: np.random.Generator, n: int, rho: float) -> FloatArray:
    x = np.empty(n)
    x[0] = rng.normal()
    steps = rng.normal(size=n) * np.sqrt(1 - rho**2)
    for i in range(1, n):
        x[i] = rho * x[i - 1] + steps[i]
    return x


def test_a_straight_line_has_its_slope_and_no_doubt() -> None:
    found = rank_trend(np.arange(10), 3 + 2.0 * np.arange(10), 0.95)
    assert found is not None
    assert (found.slope, found.low, found.high) == pytest.approx((2, 2, 2))
    assert found.p_value < 0.01


def test_one_wild_point_moves_nothing() -> None:
    x = 2.0 * np.arange(20)
    x[7] = 1e6
    found = rank_trend(np.arange(20), x, 0.95)
    assert found is not None and found.slope == pytest.approx(2)


def test_a_level_that_jumps_at_a_restart_is_no_trend() -> None:
    noise = np.random.default_rng(0).normal(size=40)
    x = noise + np.where(np.arange(40) < 20, 0, 100)
    whole = rank_trend(np.arange(40), x, 0.95)
    lives = rank_trend(np.arange(40), x, 0.95, segment=[0] * 20 + [1] * 20)
    assert whole is not None and whole.slope > 1
    assert lives is not None and lives.low < 0 < lives.high


@pytest.mark.parametrize(
    ("at", "values"), [([0, 1, 2], [1, 2, 3]), ([5] * 20, list(range(20)))], ids=["few", "no time"]
)
def test_too_little_to_tell_is_none(at: list[float], values: list[float]) -> None:
    assert rank_trend(at, values, 0.95) is None


def test_what_never_changes_has_no_slope_and_no_interval() -> None:
    found = rank_trend(range(20), [7.0] * 20, 0.95)
    assert found is not None
    assert (found.slope, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="must match"):
        rank_trend([1, 2], [1], 0.95)


def test_memory_widens_the_interval() -> None:
    rng = np.random.default_rng(1)
    assert variance_inflation(rng.normal(size=200)) == pytest.approx(1, abs=0.5)
    assert variance_inflation(ar1(rng, 200, 0.8)) > 3


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(-50, 50), min_size=10, max_size=25),
    st.floats(0.1, 10),
    st.floats(-5, 5),
)
def test_another_unit_and_another_zero_change_the_slope_by_the_unit(
    values: list[int], unit: float, zero: float
) -> None:
    at = np.arange(len(values))
    plain = rank_trend(at, values, 0.9)
    other = rank_trend(at, unit * np.array(values) + zero, 0.9)
    assert plain is not None and other is not None
    assert other.slope == pytest.approx(unit * plain.slope, abs=1e-9)


@pytest.mark.power
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("points", [30, 120])
def test_noise_that_remembers_is_seldom_taken_for_a_trend(points: int, rho: float) -> None:
    """At level 0.05 in at most one of ten series, at 0.001 in at most two of a hundred."""
    runs = 400
    found = [
        (rank_trend(np.arange(points), x, 0.95), rank_trend(np.arange(points), x, 0.999))
        for x in (ar1(np.random.default_rng(seed), points, rho) for seed in range(runs))
    ]
    wrong = sum(a is not None and (a.low > 0 or a.high < 0) for a, _ in found)
    very = sum(b is not None and (b.low > 0 or b.high < 0) for _, b in found)
    assert wrong <= 0.1 * runs
    assert very <= 0.02 * runs
