"""Yes-or-no outcomes in pairs: worse, better, equally good, or cannot tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.paired_outcomes import (
    Comparison,
    OutcomeCounts,
    compare_outcomes,
    difference_interval,
    majority,
    paired_counts,
    pairs_for_equivalence,
)

COUNTS = st.builds(OutcomeCounts, *[st.integers(0, 60)] * 4).filter(lambda c: c.pairs > 0)


def test_the_four_cells() -> None:
    counts = paired_counts(
        {"a": True, "b": True, "c": False, "d": False, "e": None, "f": True},
        {"a": True, "b": False, "c": True, "d": False, "e": True},
    )
    assert counts == OutcomeCounts(both=1, only_baseline=1, only_speculative=1, neither=1)


def test_majority_over_repeats() -> None:
    assert majority([True, False, True]) is True
    assert majority([True, False]) is None
    assert majority([]) is None


def test_at_an_end_of_the_interval_the_score_is_z() -> None:
    """The likelihood under a difference d, maximised here by brute force over q = P(only baseline).

    Of 50 pairs 9 only in the speculative arm, 3 only in the baseline.
    """
    n, b, c = 50, 9, 3
    interval = difference_interval(OutcomeCounts(20, c, b, 18)) or (0.0, 0.0)
    for d in interval:
        q = np.linspace(max(0.0, -d), (1 - d) / 2, 400_001)[1:-1]
        log_likelihood = b * np.log(q + d) + c * np.log(q) + (n - b - c) * np.log(1 - 2 * q - d)
        best = q[log_likelihood.argmax()]
        z = (b - c - n * d) / (n * (2 * best + d - d * d)) ** 0.5
        assert abs(z) == pytest.approx(1.96, abs=1e-3)


@given(COUNTS)
def test_exchanging_the_arms_turns_the_interval_round(c: OutcomeCounts) -> None:
    turned = OutcomeCounts(c.both, c.only_speculative, c.only_baseline, c.neither)
    low, high = difference_interval(c) or (0.0, 0.0)
    other_low, other_high = difference_interval(turned) or (0.0, 0.0)
    assert low == pytest.approx(-other_high, abs=1e-6)
    assert high == pytest.approx(-other_low, abs=1e-6)
    assert -1 <= low <= (c.difference or 0.0) + 1e-9 and (c.difference or 0.0) - 1e-9 <= high <= 1


def test_52_pairs_without_a_difference_are_equal_within_5_percent_and_51_are_not() -> None:
    # z = 1.645: n > 2.706 · 0.95 / 0.05 = 51.4.
    assert pairs_for_equivalence(0.05) == 52
    equal = compare_outcomes(OutcomeCounts(52, 0, 0, 0))
    assert equal.comparison is Comparison.NO_PRACTICAL_DIFFERENCE
    assert compare_outcomes(OutcomeCounts(51, 0, 0, 0)).comparison is Comparison.CANNOT_TELL


def test_ten_tasks_lost_and_one_won_of_80_are_worse() -> None:
    found = compare_outcomes(OutcomeCounts(40, 10, 1, 29))
    assert found.comparison is Comparison.LOWER
    assert (found.baseline_share, found.speculative_share) == (50 / 80, 41 / 80)
    # Exact McNemar: 2 · (1 + 11) / 2^11.
    assert found.p_value == pytest.approx(2 * 12 / 2**11)
    turned = compare_outcomes(OutcomeCounts(40, 1, 10, 29))
    assert turned.comparison is Comparison.HIGHER


def test_a_difference_smaller_than_the_margin_is_no_practical_difference() -> None:
    # 12 of 1,000 lost and none won is significant (p = 0.0005), and within 5 %.
    found = compare_outcomes(OutcomeCounts(500, 12, 0, 488))
    assert found.p_value < 0.001
    assert found.comparison is Comparison.NO_PRACTICAL_DIFFERENCE


def test_no_pairs_cannot_tell() -> None:
    found = compare_outcomes(OutcomeCounts(0, 0, 0, 0))
    assert found.comparison is Comparison.CANNOT_TELL
    assert (found.difference, found.low, found.baseline_share) == (None, None, None)


def _simulate(seed: int, trials: int, n: int, only_b: float, only_s: float) -> list[Comparison]:
    rng = np.random.default_rng(seed)
    cells = rng.multinomial(n, [0.5, only_b, only_s, 0.5 - only_b - only_s], trials)
    return [compare_outcomes(OutcomeCounts(*map(int, row))).comparison for row in cells]


def test_equal_arms_are_called_different_at_most_at_the_level() -> None:
    """Level 0.05, 60 tasks of which one in five flips: of 200 at most 20 (chance of more 0.1 %)."""
    found = _simulate(1, 200, 60, 0.1, 0.1)
    assert sum(c in (Comparison.HIGHER, Comparison.LOWER) for c in found) <= 20


def test_arms_that_differ_by_the_margin_are_called_equal_at_most_at_the_level() -> None:
    """At the edge of the margin, 5 % worse, 300 tasks: of 200 at most 20 called equal."""
    found = _simulate(2, 200, 300, 0.10, 0.05)
    assert found.count(Comparison.NO_PRACTICAL_DIFFERENCE) <= 20


def test_an_arm_that_loses_a_tenth_of_300_tasks_is_found() -> None:
    """Stated power: at least 0.9."""
    assert _simulate(3, 100, 300, 0.15, 0.05).count(Comparison.LOWER) >= 90
