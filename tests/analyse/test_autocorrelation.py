from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.autocorrelation import (
    assumed_autocorrelation,
    inflated_standard_error,
    lag1_autocorrelation,
    variance_inflation,
)
from orchestrator.analyse.boundary_calibration import ar1_noise


def test_a_series_worked_out_by_hand() -> None:
    # Deviations -1.5, -0.5, 0.5, 1.5: (0.75 - 0.25 + 0.75) / 5.
    assert lag1_autocorrelation([1.0, 2.0, 3.0, 4.0]) == pytest.approx(0.25)
    assert lag1_autocorrelation([1.0, -1.0, 1.0, -1.0]) == pytest.approx(-0.75)


def test_equal_pairs_have_no_autocorrelation_and_no_error() -> None:
    assert np.isnan(lag1_autocorrelation([0.5, 0.5, 0.5]))
    assert inflated_standard_error([0.5, 0.5, 0.5]) == 0.0


def test_few_pairs_are_not_trusted_about_their_independence() -> None:
    # r1 = -1/n is what independent pairs show on average, taken as 0: then only the weight of
    # eight pairs at 0.5 is left.
    assert assumed_autocorrelation(-1 / 6, 6) == pytest.approx(4 / 14)
    assert assumed_autocorrelation(-1 / 64, 64) == pytest.approx(4 / 72)


def test_alternating_pairs_never_narrow_the_interval() -> None:
    assert assumed_autocorrelation(-0.9, 24) == 0.0
    assert variance_inflation(0.0, 24) == pytest.approx(1.0)


@given(st.integers(2, 64), st.floats(0, 0.8))
def test_inflation_is_the_sum_it_stands_for(pairs: int, rho: float) -> None:
    k = np.arange(1, pairs)
    v = 1 + 2 * float(np.sum((1 - k / pairs) * rho**k))
    assert variance_inflation(rho, pairs) == pytest.approx(v * (pairs - 1) / (pairs - v))
    assert variance_inflation(rho, pairs) >= 1 - 1e-12


def test_inflation_is_the_true_variance_of_the_mean_over_the_naive_one() -> None:
    noise = ar1_noise(np.random.default_rng(5), 100_000, 12, 0.5)
    true_variance = noise.mean(axis=1).var()
    naive = (noise.var(axis=1, ddof=1) / 12).mean()
    assert variance_inflation(0.5, 12) == pytest.approx(true_variance / naive, rel=0.03)
