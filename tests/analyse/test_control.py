from __future__ import annotations

import math

import pytest

from orchestrator.analyse.boundaries import LookPlan
from orchestrator.analyse.control import aa_control

PLAN = LookPlan(0.95, 6, 24)
EVEN = [0.01, -0.01, 0.012, -0.008, 0.006, -0.01]


def test_a_baseline_that_equals_itself() -> None:
    seen = aa_control(EVEN, PLAN, metric="speedup_tpot", margin=0.03)
    assert seen.covers_one
    assert seen.trustworthy
    assert seen.largest_log_ratio == pytest.approx(0.012)
    assert seen.floor is not None
    assert 1.0 < seen.floor < 1.05
    assert seen.above_floor(1.5)
    assert seen.above_floor(1 / 1.5)
    assert not seen.above_floor(1.001)


def test_a_relaunch_that_is_faster_casts_doubt_on_the_sweep() -> None:
    seen = aa_control([x + 0.2 for x in EVEN], PLAN, metric="speedup_tpot", margin=0.03)
    assert seen.covers_one is False
    assert seen.trustworthy is False
    assert seen.floor is not None
    assert seen.floor > math.exp(0.2)


def test_too_few_pairs_say_nothing() -> None:
    seen = aa_control([0.01], PLAN, metric="speedup_tpot", margin=0.03)
    assert (seen.covers_one, seen.floor, seen.trustworthy, seen.above_floor(2.0)) == (None,) * 4
    assert seen.largest_log_ratio == pytest.approx(0.01)
    assert aa_control([], PLAN, metric="m", margin=0.03).largest_log_ratio is None
