"""Permutation tests: the labels, the p-value, and many prompts at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.permutation import (
    combined,
    permutation_p_value,
    permutations_needed,
    relabellings,
)


def test_the_first_row_is_the_truth_and_every_row_keeps_the_sizes() -> None:
    labels = relabellings(3, 5, 200, np.random.default_rng(0))
    assert labels.shape == (201, 8)
    assert labels[0].tolist() == [True] * 3 + [False] * 5
    assert (labels.sum(axis=1) == 3).all()
    # Each sample carries the label in 3 of 8 relabellings; 200 draws: within 5 standard errors.
    assert np.abs(labels[1:].mean(axis=0) - 3 / 8).max() < 5 * (3 / 8 * 5 / 8 / 200) ** 0.5


@pytest.mark.parametrize(
    ("statistics", "expected"),
    [([9, 1, 2, 3], 1 / 4), ([2, 1, 2, 3], 3 / 4), ([0, 1, 2, 3], 1.0), ([5, 5, 5, 5], 1.0)],
)
def test_the_truth_counts_itself_so_that_no_p_value_is_0(
    statistics: list[float], expected: float
) -> None:
    assert permutation_p_value(np.array(statistics, dtype=float)) == expected


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_a_p_value_is_between_its_smallest_and_1(statistics: list[float]) -> None:
    p = permutation_p_value(np.array(statistics))
    assert 1 / len(statistics) <= p <= 1


def test_p_values_are_uniform_under_the_null() -> None:
    rng = np.random.default_rng(1)
    p = np.array([permutation_p_value(rng.normal(size=200)) for _ in range(2000)])
    # Kolmogorov distance: below 1.63 / sqrt(n) with a chance of 99 %; 1/200 for the steps.
    distance = np.abs(np.sort(p) - np.arange(1, 2001) / 2000).max()
    assert distance < 1.63 / 2000**0.5 + 1 / 200


def test_combining_weighs_prompts_alike_and_ignores_those_that_say_nothing() -> None:
    rows = np.array([[1.0, 0, 0, 0], [1000.0, 0, 0, 0], [7.0, 7, 7, 7]])
    # One prompt: mean 1/4, standard deviation sqrt(3)/4, so the truth stands at sqrt(3).
    assert combined(rows)[0] == pytest.approx(2 * 3**0.5)
    assert permutation_p_value(combined(rows)) == 1 / 4


def test_a_small_difference_in_every_prompt_shows_only_together() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(64, 1000))
    rows[:, 0] = 0.6
    singly = [permutation_p_value(row) for row in rows]
    assert min(singly) > 0.2
    # 0.6 · sqrt(64) = 4.8 standard deviations.
    assert permutation_p_value(combined(rows)) == 1 / 1000


def test_how_many_permutations_holm_needs() -> None:
    assert permutations_needed(100, 0.01) == 20_000
    with pytest.raises(ValueError, match="at least one sample"):
        relabellings(0, 3, 10, np.random.default_rng(0))
