"""Output lengths and scores of the same prompts in both arms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.paired_means import compare_means
from orchestrator.analyse.paired_outcomes import Comparison
from orchestrator.analyse.paired_ratio import compare_ratio, sign_flip_p_value

LENGTHS = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 500)), min_size=2, max_size=30)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_equal_lengths_are_no_practical_difference_from_ten_prompts_on() -> None:
    assert compare_ratio([64] * 10, [64] * 10, rng()).comparison is (
        Comparison.NO_PRACTICAL_DIFFERENCE
    )
    assert compare_ratio([64] * 9, [64] * 9, rng()).comparison is Comparison.CANNOT_TELL


def test_an_arm_that_says_a_fifth_more_is_caught() -> None:
    lengths = np.arange(20, 60)
    found = compare_ratio(lengths, 1.2 * lengths, rng())
    assert found.ratio == pytest.approx(1.2)
    assert found.comparison is Comparison.HIGHER
    assert found.p_value == 1 / 5000


def test_the_ratio_is_of_totals_not_a_mean_of_ratios() -> None:
    # 10 and 100 tokens against 20 and 100: 120/110, not (2 + 1)/2.
    found = compare_ratio([10, 100], [20, 100], rng())
    assert found.ratio == pytest.approx(120 / 110)


def test_the_interval_by_hand() -> None:
    # b = 1, s = 0.9 or 1.1 by turns, n = 100: sd 0.1005, error 0.01005, t(0.975, 99) = 1.984.
    found = compare_ratio([1.0] * 100, [0.9, 1.1] * 50, rng())
    assert found.high == pytest.approx(1 + 1.984 * 0.1005 / 10, abs=1e-4)
    assert found.comparison is Comparison.NO_PRACTICAL_DIFFERENCE


def test_an_empty_baseline_has_no_ratio() -> None:
    found = compare_ratio([0] * 12, [5] * 12, rng())
    assert (found.comparison, found.ratio) == (Comparison.CANNOT_TELL, None)


def test_lengths_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="got 2 and 1"):
        compare_ratio([1, 2], [1], rng())
    with pytest.raises(ValueError, match=">= 0"):
        compare_ratio([1, -2], [1, 2], rng())


@given(LENGTHS)
def test_the_sign_flip_test_is_symmetric_and_a_probability(pairs: list[tuple[int, int]]) -> None:
    d = np.array([a - b for a, b in pairs], dtype=float)
    p = sign_flip_p_value(d, rng(), 99)
    assert p == sign_flip_p_value(-d, rng(), 99)
    assert 1 / 100 <= p <= 1


def test_sign_flip_p_values_are_uniform_under_the_null() -> None:
    generator = rng(1)
    p = np.array([sign_flip_p_value(generator.normal(size=12), generator, 199) for _ in range(800)])
    distance = np.abs(np.sort(p) - np.arange(1, 801) / 800).max()
    assert distance < 1.63 / 800**0.5 + 1 / 200


def test_equal_arms_are_called_different_at_most_at_the_level() -> None:
    """Skewed lengths, level 0.05, 30 prompts: of 300 at most 27 (chance of more 0.2 %)."""
    generator, alarms = rng(2), 0
    for _ in range(300):
        typical = generator.lognormal(4, 0.8, 30)
        arms = [np.round(typical * generator.lognormal(0, 0.3, 30)) for _ in range(2)]
        found = compare_ratio(*arms, generator, permutations=999)
        alarms += found.comparison in (Comparison.HIGHER, Comparison.LOWER)
    assert alarms <= 27


def test_ratios_at_the_margin_are_called_equal_at_most_at_the_level() -> None:
    """5 % longer, 60 prompts: of 300 at most 27 called equal."""
    generator, equal = rng(3), 0
    for _ in range(300):
        baseline = generator.lognormal(4, 0.5, 60)
        other = 1.05 * baseline * generator.lognormal(-0.005, 0.1, 60)
        found = compare_ratio(baseline, other, generator, permutations=199)
        equal += found.comparison is Comparison.NO_PRACTICAL_DIFFERENCE
    assert equal <= 27


def test_a_score_that_drops_is_lower_and_undefined_prompts_are_left_out() -> None:
    baseline = {f"p{i}": 0.8 for i in range(20)} | {"q": None, "r": 0.5}
    speculative = {f"p{i}": 0.6 + 0.01 * (i % 3) for i in range(20)} | {"q": 0.1, "r": None}
    found = compare_means(baseline, speculative, rng(), margin=0.05)
    assert (found.prompts, found.comparison) == (20, Comparison.LOWER)
    assert found.baseline_mean == pytest.approx(0.8)


def test_a_score_without_prompts_cannot_tell() -> None:
    found = compare_means({"p": None}, {"p": 1.0}, rng(), margin=0.05)
    assert (found.comparison, found.difference) == (Comparison.CANNOT_TELL, None)
    with pytest.raises(ValueError, match="margin: must be > 0"):
        compare_means({}, {}, rng(), margin=0)
