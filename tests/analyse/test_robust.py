from __future__ import annotations

import pytest

from orchestrator.analyse.robust import robust_estimate

QUIET = [0.10, 0.11, 0.09, 0.10, 0.12, 0.08, 0.10, 0.11]


def test_one_pair_ten_times_off_moves_the_mean_but_not_the_centre() -> None:
    seen = robust_estimate([*QUIET, 1.0])
    assert seen is not None
    assert sum([*QUIET, 1.0]) / 9 == pytest.approx(0.201, abs=1e-3)
    assert seen.log_center == pytest.approx(0.105, abs=0.006)
    assert seen.outliers == (8,)


def test_without_outliers_none_is_named() -> None:
    seen = robust_estimate(QUIET)
    assert seen is not None
    assert seen.outliers == ()


def test_few_or_equal_pairs_name_no_outlier() -> None:
    few = robust_estimate([0.1, 0.1, 5.0])
    equal = robust_estimate([0.1] * 8 + [5.0])
    assert few is not None
    assert equal is not None
    assert few.outliers == equal.outliers == ()
    assert robust_estimate([]) is None


def test_a_centre_worked_out_by_hand() -> None:
    # Means of two: 0, 0.5, 1, 2, 2.5, 4 -> median (1 + 2) / 2.
    seen = robust_estimate([0.0, 1.0, 4.0])
    assert seen is not None
    assert seen.log_center == pytest.approx(1.5)
