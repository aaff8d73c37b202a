from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analyse.trend import trend_of

ALTERNATING = [i % 2 == 0 for i in range(12)]


def test_an_order_effect_and_a_drift_worked_out_by_hand() -> None:
    # 0.1 on average; +-0.02 by order (0.04 apart); rising by 0.22 from first to last.
    x = [0.1 + (0.02 if i % 2 == 0 else -0.02) + 0.02 * (i - 5.5) for i in range(12)]
    seen = trend_of(x, ALTERNATING)
    assert seen.order is not None
    assert seen.drift is not None
    assert seen.order.estimate == pytest.approx(0.04)
    assert seen.drift.estimate == pytest.approx(0.22)
    assert seen.order.present
    assert seen.drift.present
    assert seen.may_drift


def test_few_pairs_tell_nothing() -> None:
    assert trend_of([0.1] * 4, ALTERNATING[:4]).drift is None


def test_one_order_alone_has_no_order_effect() -> None:
    seen = trend_of([0.1, 0.2, 0.1, 0.3, 0.2, 0.1], [True] * 6)
    assert seen.order is None
    assert seen.drift is not None


def test_lengths_must_match() -> None:
    with pytest.raises(ValueError, match="3 log ratios, but 2 orders"):
        trend_of([0.1, 0.2, 0.3], [True, False])


def test_pure_noise_is_rarely_called_an_effect() -> None:
    rng = np.random.default_rng(2)
    seen = [trend_of(list(rng.normal(0, 0.04, 12)), ALTERNATING) for _ in range(1000)]
    # 1 % expected; 1.9 % is three standard errors of 1,000 trials above it.
    assert np.mean([t.drift is not None and t.drift.present for t in seen]) <= 0.019
    assert np.mean([t.order is not None and t.order.present for t in seen]) <= 0.019


def test_a_drift_of_the_ratio_of_a_fifth_is_seen() -> None:
    rng = np.random.default_rng(3)
    slope = np.linspace(0, np.log(0.8), 24)
    orders = [i % 2 == 0 for i in range(24)]
    seen = [trend_of(list(slope + rng.normal(0, 0.04, 24)), orders) for _ in range(200)]
    assert np.mean([t.drift is not None and t.drift.present for t in seen]) >= 0.95
