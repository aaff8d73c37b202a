from __future__ import annotations

import math
from dataclasses import replace

import pytest

from orchestrator.analyse.pairs import RatioSeries
from orchestrator.decide.verdict import Verdict, classify, decide, should_stop
from orchestrator.plan.trial import Protocol
from tests.analyse.test_interval import noisy

PROTOCOL = Protocol(pairs_min=6, pairs_max=24, confidence=0.95, margin=0.03)


def series(log_ratios: list[float], left_out: int = 0) -> RatioSeries:
    n = len(log_ratios)
    return RatioSeries(
        "speedup_tpot",
        tuple(log_ratios),
        tuple(i % 2 == 0 for i in range(n)),
        tuple(range(n)),
        left_out,
    )


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.03, 0.10, Verdict.FASTER),
        (0.0295, 0.10, Verdict.CANNOT_TELL),  # log(1.03) = 0.02956
        (-0.10, -0.03, Verdict.SLOWER),
        (-0.02, 0.02, Verdict.NO_PRACTICAL_DIFFERENCE),
        (-0.10, 0.02, Verdict.CANNOT_TELL),
        (0.01, 0.02, Verdict.NO_PRACTICAL_DIFFERENCE),  # above 1, but too little to matter
    ],
)
def test_the_interval_against_the_margin(low: float, high: float, verdict: Verdict) -> None:
    interval = decide(series([0.0, 0.1] * 3), PROTOCOL).interval
    assert interval is not None
    placed = replace(interval, log_low=low, log_high=high)
    assert classify(placed, math.log(1.03)) is verdict


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (math.log(1.5), Verdict.FASTER),
        (math.log(0.7), Verdict.SLOWER),
        (0.0, Verdict.NO_PRACTICAL_DIFFERENCE),
    ],
)
def test_clear_cases_are_decided_and_stop(mean: float, verdict: Verdict) -> None:
    seen = decide(series(noisy(mean, 0.01, 12)), PROTOCOL)
    assert seen.verdict is verdict
    assert seen.further_pairs is None
    assert should_stop(seen, PROTOCOL, pairs_measured=12)
    assert seen.speedup == pytest.approx(math.exp(mean))
    assert seen.low is not None
    assert seen.high is not None
    assert seen.low < math.exp(mean) < seen.high


def test_before_the_first_look_one_cannot_tell() -> None:
    seen = decide(series([0.5] * 4, left_out=2), PROTOCOL)
    assert seen.verdict is Verdict.CANNOT_TELL
    assert (seen.low, seen.high, seen.p_value) == (None, None, 1.0)
    assert seen.further_pairs == 2
    assert seen.speedup == pytest.approx(math.exp(0.5))
    assert seen.pairs_left_out == 2
    assert not should_stop(seen, PROTOCOL, pairs_measured=6)


def test_without_any_pair_nothing_is_known() -> None:
    seen = decide(series([], left_out=24), PROTOCOL)
    assert seen.verdict is Verdict.CANNOT_TELL
    assert seen.speedup is None
    assert seen.robust is None
    assert should_stop(seen, PROTOCOL, pairs_measured=24)


def test_noise_leaves_it_open_and_says_how_many_pairs_would_decide() -> None:
    seen = decide(series(noisy(0.06, 0.06, 10)), PROTOCOL)
    assert seen.verdict is Verdict.CANNOT_TELL
    assert seen.further_pairs is not None
    assert seen.further_pairs > 1
    assert not should_stop(seen, PROTOCOL, pairs_measured=10)


def test_a_drifting_ratio_is_measured_to_the_end() -> None:
    falling = [math.log(2.0) - 0.03 * i + 0.002 * (-1) ** (i // 2) for i in range(10)]
    seen = decide(series(falling), PROTOCOL)
    assert seen.verdict is Verdict.FASTER
    assert seen.trend.may_drift
    assert any(note.startswith("the ratio drifts: x0.76") for note in seen.notes)
    assert not should_stop(seen, PROTOCOL, pairs_measured=10)
    assert should_stop(seen, PROTOCOL, pairs_measured=24)


def test_looked_at_once_a_trial_goes_on_and_its_interval_is_narrower() -> None:
    once = replace(PROTOCOL, looks="once")
    ratios = noisy(math.log(1.5), 0.1, 6)
    seen, often = decide(series(ratios), once), decide(series(ratios), PROTOCOL)
    assert seen.verdict is Verdict.FASTER
    assert not should_stop(seen, once, pairs_measured=6)
    assert should_stop(seen, once, pairs_measured=24)
    assert seen.low is not None
    assert often.low is not None
    assert seen.low > often.low
    assert seen.p_value < often.p_value
    # The quantile of t with n - 1 degrees of freedom, and what autocorrelation may add to it.
    assert seen.interval is not None
    assert seen.interval.critical_value == pytest.approx(2.5706, abs=0.05)


@pytest.mark.parametrize(("pairs", "further"), [(0, 2), (1, 1)])
def test_looked_at_once_two_pairs_are_the_least(pairs: int, further: int) -> None:
    seen = decide(series([0.5] * pairs), replace(PROTOCOL, looks="once"))
    assert seen.verdict is Verdict.CANNOT_TELL
    assert seen.low is None
    assert seen.further_pairs == further


def test_looked_at_once_the_further_pairs_are_those_of_a_longer_single_look() -> None:
    once = replace(PROTOCOL, looks="once")
    seen = decide(series(noisy(0.06, 0.06, 10)), once)
    often = decide(series(noisy(0.06, 0.06, 10)), PROTOCOL)
    assert seen.further_pairs is not None
    assert often.further_pairs is not None
    assert 0 < seen.further_pairs < often.further_pairs


def test_an_order_effect_is_reported() -> None:
    x = [v + (0.05 if i % 2 == 0 else -0.05) for i, v in enumerate(noisy(0.3, 0.01, 12))]
    assert any("the order matters" in note for note in decide(series(x), PROTOCOL).notes)


def test_an_outlier_is_named_and_kept() -> None:
    x = [0.10, 0.11, 0.09, 0.10, 0.12, 0.08, 0.10, 1.00, 0.11, 0.09, 0.10, 0.10]
    seen = decide(series(x), PROTOCOL)
    assert seen.speedup == pytest.approx(math.exp(sum(x) / 12))
    assert any("far from the others: pair 7; kept in the mean" in note for note in seen.notes)
    assert seen.robust is not None
    assert seen.robust.speedup == pytest.approx(math.exp(0.1), rel=0.02)


def test_pairs_past_the_plan_are_not_looked_at() -> None:
    x = noisy(0.1, 0.02, 24)
    assert decide(series([*x, 50.0]), PROTOCOL).speedup == decide(series(x), PROTOCOL).speedup
