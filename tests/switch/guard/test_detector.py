"""The evidence: by hand, and against its promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.switch.guard.detector import (
    BETS,
    NOTHING,
    Detector,
    added,
    log_mean_exp,
    of_counts,
    of_value,
)

shares = st.floats(0.01, 0.97)


def test_a_bet_of_a_fifth_at_one_in_ten() -> None:
    # f = 0.2, p = 0.1: a hit makes 1 + 0.2 * 0.9 / 0.1 = 2.8 of the stake, a miss 0.8.
    at = BETS.index(0.2)
    assert math.exp(of_counts(1, 1, 0.1)[at]) == pytest.approx(2.8)
    assert math.exp(of_counts(0, 1, 0.1)[at]) == pytest.approx(0.8)
    assert math.exp(of_counts(1, 3, 0.1)[at]) == pytest.approx(2.8 * 0.8 * 0.8)


@given(shares)
def test_at_the_limit_a_bet_neither_gains_nor_loses(p: float) -> None:
    for hit, miss in zip(of_counts(1, 1, p), of_counts(0, 1, p), strict=True):
        assert p * math.exp(hit) + (1 - p) * math.exp(miss) == pytest.approx(1)


@given(shares, st.floats(0, 1))
def test_a_value_of_0_or_1_is_a_miss_or_a_hit_and_all_lie_between(p: float, x: float) -> None:
    assert of_value(1.0, p) == pytest.approx(of_counts(1, 1, p))
    assert of_value(0.0, p) == pytest.approx(of_counts(0, 1, p))
    for low, value, high in zip(of_value(0.0, p), of_value(x, p), of_value(1.0, p), strict=True):
        assert low - 1e-12 <= value <= high + 1e-12


def test_evidence_grows_while_more_than_allowed_is_seen_and_knows_since_when() -> None:
    detector = Detector()
    for round_ in range(20):
        detector.update(float(round_), of_counts(0, 5, 0.2), 5, worth=5)
    assert detector.log_evidence < 0
    for round_ in range(20, 40):
        detector.update(float(round_), of_counts(4, 5, 0.2), 5, worth=5)
    assert detector.log_evidence > math.log(1e12)
    assert detector.began_s == 20.0


def test_without_observations_nothing_changes() -> None:
    detector = Detector()
    detector.update(1.0, of_counts(3, 4, 0.2), 4, worth=4)
    before = detector.log_evidence
    for round_ in range(10_000):
        detector.update(2.0 + round_, NOTHING, 0, worth=0)
    assert detector.log_evidence == before


def test_a_round_is_worth_no_more_than_it_may() -> None:
    a_thousand, two = Detector(), Detector()
    a_thousand.update(0.0, of_counts(1000, 1000, 0.2), 1000, worth=2)
    two.update(0.0, of_counts(2, 2, 0.2), 2, worth=2)
    assert a_thousand.log_evidence == pytest.approx(two.log_evidence)


def test_one_that_does_not_restart_remembers_the_good_rounds_too() -> None:
    process, detector = Detector(restarting=False), Detector()
    for one in (process, detector):
        for round_ in range(50):
            one.update(float(round_), of_counts(0, 4, 0.5), 4, worth=4)
        one.update(50.0, of_counts(4, 4, 0.5), 4, worth=4)
    assert process.log_evidence < detector.log_evidence


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=9))
def test_the_mean_of_evidence_does_not_overflow(values: list[float]) -> None:
    found = log_mean_exp(values)
    assert max(values) - math.log(len(values)) - 1e-9 <= found <= max(values) + 1e-9


def test_at_the_limit_alarms_are_no_more_frequent_than_promised() -> None:
    # Level 200 promises 200 rounds on average at least, at the worst traffic that is borne.
    # 400 runs of at most 1,000 rounds: their mean, cut short, must lie above that.
    random = np.random.default_rng(3)
    lengths = []
    for _ in range(400):
        detector = Detector()
        hits = random.binomial(3, 0.3, 1000)
        for round_, k in enumerate(hits, start=1):
            detector.update(float(round_), of_counts(int(k), 3, 0.3), 3, worth=3)
            if detector.log_evidence >= math.log(200):
                break
        lengths.append(round_)
    assert np.mean(lengths) > 200


def test_log_factors_of_separate_events_add() -> None:
    assert added(of_counts(1, 2, 0.3), of_counts(2, 5, 0.3)) == pytest.approx(of_counts(3, 7, 0.3))
