"""What docs/guard.md promises of delays and false alarms, over many seeds and whole weeks."""

from __future__ import annotations

import pytest

from benchmarks.guard.bench_guard import CASES, OUTAGES_PER_DAY, Case, delay_s, false_alarms

ALL_ON_THE_ARM, HALF_ON_THE_ARM = CASES[:2]


@pytest.mark.power
@pytest.mark.parametrize(("case", "least"), [(ALL_ON_THE_ARM, 0.95), (HALF_ON_THE_ARM, 0.85)])
def test_halved_acceptance_is_found_within_a_minute(case: Case, least: float) -> None:
    delays = [delay_s(case, seed) for seed in range(1000, 1060)]
    soon = sum(delay is not None and delay <= 60 for delay in delays)
    assert soon >= least * len(delays), sorted(delay or 9999.0 for delay in delays)


@pytest.mark.power
@pytest.mark.parametrize(("share", "outages_per_day"), [(0.5, OUTAGES_PER_DAY), (1.0, 0.0)])
def test_at_most_one_false_fallback_in_a_simulated_week(
    share: float, outages_per_day: float
) -> None:
    weeks = [
        false_alarms(week, share=share, outages_per_day=outages_per_day) for week in range(100, 103)
    ]
    assert sum(map(len, weeks)) <= len(weeks), weeks


@pytest.mark.slow
def test_a_quarter_of_a_quiet_day_moves_nothing() -> None:
    assert false_alarms(7, share=0.5, days=0.25) == []


def test_halved_acceptance_is_found_within_a_minute_once() -> None:
    found = delay_s(HALF_ON_THE_ARM, 3)
    assert found is not None and found <= 60
