"""Leaks, saw-teeth, steps, loads, stalls and cures, each drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analyse.soak.cure import Cure, cure_of
from orchestrator.analyse.soak.drift import Change, drift_between, drift_of
from orchestrator.analyse.soak.leak import Growth, Leak, leak_of
from orchestrator.analyse.soak.rank_trend import FloatArray
from orchestrator.analyse.soak.series import Series, settled, thinned, without_load
from orchestrator.analyse.soak.stalls import stalls_of
from orchestrator.analyse.soak.steps import steps_of

HOURS = np.linspace(0, 10, 101)
NOISE = np.random.default_rng(0).normal(size=101)


def series(values: FloatArray, load: FloatArray | None = None) -> Series:
    return Series.of(HOURS.tolist(), values.tolist(), None if load is None else load.tolist())


def leak(values: FloatArray, room: float | None = 100.0) -> Leak:
    """Over a horizon of 100 h: one unit an hour would fill the room."""
    return leak_of(series(values), room=room, horizon_h=100, confidence=0.99)


class TestLeak:
    def test_three_times_the_bound_is_full_in_a_third_of_the_horizon(self) -> None:
        found = leak(50 + 3 * HOURS + NOISE)
        assert found.growth is Growth.LEAK
        assert found.hours_left == pytest.approx(100 / 3, rel=0.05)

    def test_a_tenth_of_the_bound_is_shown_to_be_none(self) -> None:
        found = leak(50 + 0.1 * HOURS + NOISE)
        assert found.growth is Growth.NONE and found.hours_left is None

    def test_a_slope_at_the_bound_is_left_open(self) -> None:
        assert leak(50 + HOURS + NOISE).growth is Growth.CANNOT_TELL

    def test_without_a_limit_it_must_double(self) -> None:
        assert leak(50 + 3 * HOURS + NOISE, room=None).room == pytest.approx(79, abs=2)

    def test_a_saw_tooth_is_judged_by_its_troughs(self) -> None:
        teeth = 30 * ((HOURS * 0.7) % 1)
        found = leak(50 + teeth + 0.1 * NOISE)
        assert (found.growth, found.shape) == (Growth.NONE, "saw-tooth")
        assert leak(50 + teeth + 3 * HOURS + 0.1 * NOISE).growth is Growth.LEAK

    def test_too_few_troughs_are_no_answer(self) -> None:
        found = leak(50 + 30 * ((HOURS * 0.25) % 1) + 0.1 * NOISE)
        assert found.growth is Growth.CANNOT_TELL and "2 troughs" in str(found.why)

    def test_what_levels_off_is_judged_by_its_last_half(self) -> None:
        found = leak(50 + 30 * (1 - np.exp(-HOURS)) + 0.1 * NOISE)
        assert (found.growth, found.shape) == (Growth.NONE, "levels off")


class TestDrift:
    def drift(self, values: FloatArray, load: FloatArray | None = None) -> Change:
        return drift_of(
            series(values, load), higher_is_better=True, confidence=0.99, margin=0.05
        ).change

    def test_steady_worse_better_and_open(self) -> None:
        level = 100 * np.exp(0.01 * NOISE)
        assert self.drift(level) is Change.STEADY
        assert self.drift(level * np.exp(-0.02 * HOURS)) is Change.WORSE
        assert self.drift(level * np.exp(0.02 * HOURS)) is Change.BETTER
        assert self.drift(100 * np.exp(0.3 * NOISE)) is Change.CANNOT_TELL

    def test_a_load_that_comes_and_goes_is_no_drift(self) -> None:
        load = 1 + 0.5 * np.sin(2 * np.pi * HOURS / 4)
        assert self.drift(100 * load * np.exp(0.01 * NOISE), load) is Change.STEADY

    def test_a_load_that_only_rises_cannot_be_told_from_time(self) -> None:
        load = 1 + 0.1 * HOURS
        assert without_load(series(100 / load, load)) is None
        assert self.drift(100 / load, load) is Change.CANNOT_TELL

    def test_what_both_arms_do_drops_out(self) -> None:
        host = np.exp(-0.03 * HOURS + 0.02 * NOISE)
        base = series(100 * host * np.exp(0.005 * NOISE[::-1]))
        ours = series(140 * host)
        between = drift_between(base, ours, higher_is_better=True, confidence=0.99, margin=0.05)
        assert between.change is Change.STEADY
        assert self.drift(140 * host) is Change.WORSE

    def test_a_step_is_a_change_at_its_hour(self) -> None:
        values = 100 * np.exp(0.01 * NOISE) * np.where(HOURS > 6, 0.8, 1.0)
        found = drift_of(series(values), higher_is_better=True, confidence=0.99, margin=0.05)
        assert found.change is Change.WORSE
        (step,) = found.steps
        assert step.at_h == pytest.approx(6, abs=0.3)
        assert step.change == pytest.approx(np.log(0.8), abs=0.02)

    def test_hours_until_the_margin_is_lost(self) -> None:
        found = drift_of(
            series(100 * np.exp(-0.01 * HOURS)),
            higher_is_better=True,
            confidence=0.99,
            margin=0.05,
        )
        assert found.hours_to_margin == pytest.approx(5, rel=0.05)


def test_a_trend_has_no_steps_and_neither_has_noise() -> None:
    assert steps_of(series(HOURS + 0.1 * NOISE)) == ()
    assert steps_of(series(NOISE)) == ()


def test_settling_is_left_out_of_every_life_and_thinning_never_mixes_two() -> None:
    two = Series.of(list(range(40)), [0.0] * 20 + [10.0] * 20, life=[0] * 20 + [1] * 20)
    kept = settled(two)
    assert kept.points == 36 and kept.at_h[0] == 2 and 20 not in kept.at_h and 21 not in kept.at_h
    assert set(thinned(two, 7).values) == {0.0, 10.0}


class TestStalls:
    def test_by_the_clock(self) -> None:
        gaps = np.full(101, 0.2)
        gaps[10::20] = 5.0
        found = stalls_of(series(gaps))
        assert found is not None and len(found.at_h) == 5
        assert found.period_h == pytest.approx(2.0)
        assert found.longest_s == 5.0

    def test_now_and_then(self) -> None:
        gaps = np.full(101, 0.2)
        gaps[[5, 9, 60, 61, 90]] = 5.0
        found = stalls_of(series(gaps))
        assert found is not None and found.period_h is None and len(found.at_h) == 4

    def test_none(self) -> None:
        assert stalls_of(series(np.full(101, 0.2))) is None


@pytest.mark.parametrize(
    ("worn", "after", "cure"),
    [
        (80.0, 100.0, Cure.CURES),
        (80.0, 80.0, Cure.NO_CURE),
        (100.0, 100.0, Cure.NOTHING_LOST),
    ],
)
def test_a_cure_brings_back_at_least_half(worn: float, after: float, cure: Cure) -> None:
    jitter = [0.999, 1.0, 1.001, 1.0, 0.999, 1.001, 1.0, 1.0]
    found = cure_of(
        [100 * j for j in jitter],
        [worn * j for j in jitter],
        [after * j for j in jitter],
        higher_is_better=True,
        confidence=0.95,
        margin=0.05,
    )
    assert found.cure is cure


def test_two_windows_show_no_cure() -> None:
    found = cure_of(
        [1.0, 1.0], [2.0] * 9, [1.0] * 9, higher_is_better=False, confidence=0.95, margin=0.05
    )
    assert found.cure is Cure.CANNOT_TELL
