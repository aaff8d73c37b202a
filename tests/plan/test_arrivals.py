"""When requests are sent: known answers first, then properties of the random processes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.arrivals import (
    RateProfile,
    RateSegment,
    bursts,
    gamma_units,
    offsets,
    ramp,
    scale_for_rate,
    steady,
    trace_offsets,
)
from orchestrator.plan.trial import LoadPoint


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("rate_rps", "sent", "next_due_s"),
    [
        (1.0, 0, 0.0),  # 1 a second, none sent: the first is due at once
        (1.0, 1, 1.0),
        (1.0, 10, 10.0),
        (4.0, 10, 2.5),  # 4 a second, 10 sent => the 11th is due after 2.5 s
        (0.5, 3, 6.0),
    ],
)
def test_constant_rate(rate_rps: float, sent: int, next_due_s: float) -> None:
    load = LoadPoint("open", rate_rps=rate_rps, arrivals="constant")
    assert offsets(load, sent + 1, rng())[sent] == pytest.approx(next_due_s)


@pytest.mark.parametrize(
    ("requests", "due_s"),
    [
        # 0 -> 10 a second over 10 s: t²/2 requests are due after t seconds, 50 at the ramp's end.
        (0.0, 0.0),
        (0.5, 1.0),
        (2.0, 2.0),
        (12.5, 5.0),
        (50.0, 10.0),
        (60.0, 11.0),  # then on at 10 a second
    ],
)
def test_ramp(requests: float, due_s: float) -> None:
    assert ramp(0, 10, over_s=10).when(requests) == pytest.approx(due_s)
    assert ramp(0, 10, over_s=10).expected(due_s) == pytest.approx(requests)


def test_a_ramp_down_to_zero_never_sends_what_lies_beyond_it() -> None:
    down = ramp(10, 0, over_s=10)
    assert down.when(50.0) == pytest.approx(10.0)
    assert down.when(50.1) == math.inf
    load = LoadPoint("open", rate_rps=1.0, arrivals="constant")
    with pytest.raises(ValueError, match="ends at 0 requests/s after 51 of 60"):
        offsets(load, 60, rng(), profile=down)


def test_bursts_are_where_they_were_put() -> None:
    # 2 s at 1/s, 1 s at 10/s, twice, then 1/s: 12 requests in every cycle of 3 s.
    profile = bursts(1, 10, every_s=3, burst_s=1, count=2)
    load = LoadPoint("open", arrivals="constant")
    times = np.array(offsets(load, 27, rng(), profile=profile), dtype=float)
    assert times[[0, 1, 2, 3]] == pytest.approx([0, 1, 2, 2.1])
    assert np.sum((times >= 2) & (times < 2.95)) == 10
    assert times[12] == pytest.approx(3.0)
    assert times[-1] == pytest.approx(8.0)
    with pytest.raises(ValueError, match="burst_s < every_s"):
        bursts(1, 10, every_s=1, burst_s=1, count=1)


def test_poisson_has_the_rate_and_the_spread_of_its_name() -> None:
    load = LoadPoint("open", rate_rps=50.0, arrivals="poisson")
    gaps = np.diff((0.0, *_floats(offsets(load, 20_000, rng()))))
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, rel=0.03)
    # Memoryless: P(gap > mean) = e^-1.
    assert np.mean(gaps > 1 / 50) == pytest.approx(math.exp(-1), rel=0.05)


@pytest.mark.parametrize("shape", [0.25, 1.0, 4.0])
def test_gamma_gaps_have_mean_one_and_variation_by_shape(shape: float) -> None:
    gaps = np.diff(gamma_units(40_000, shape, rng()))
    assert gaps.mean() == pytest.approx(1.0, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(1 / math.sqrt(shape), rel=0.05)


def test_gamma_of_shape_one_is_poisson_of_the_same_seed() -> None:
    poisson = offsets(LoadPoint("open", rate_rps=3, arrivals="poisson"), 100, rng())
    gamma = offsets(LoadPoint("open", rate_rps=3, arrivals="gamma", burstiness=1), 100, rng())
    assert poisson == gamma


def test_a_poisson_ramp_has_its_work_where_the_ramp_says() -> None:
    load = LoadPoint("open", arrivals="poisson")
    times = np.array(offsets(load, 5_000, rng(), profile=ramp(0, 100, over_s=100)), dtype=float)
    # 5,000 requests are due in 100 s; a quarter of them in the first half.
    assert np.mean(times < 50) == pytest.approx(0.25, abs=0.02)
    assert times[-1] == pytest.approx(100, rel=0.03)


def test_the_same_seed_plans_the_same_times() -> None:
    load = LoadPoint("open", rate_rps=2.0, arrivals="gamma", burstiness=0.5)
    assert offsets(load, 50, rng(3)) == offsets(load, 50, rng(3))
    assert offsets(load, 50, rng(3)) != offsets(load, 50, rng(4))


def test_a_trace_starts_at_zero_in_order_and_is_scaled() -> None:
    recorded = [104.0, 100.0, 101.0, 110.0]
    assert trace_offsets(recorded, 4).tolist() == [0, 1, 4, 10]
    assert trace_offsets(recorded, 3, time_scale=0.5).tolist() == [0, 0.5, 2]
    # 3 gaps in 10 s; for 3 a second it must run 10 times as fast.
    assert scale_for_rate(recorded, 3.0) == pytest.approx(0.1)
    load = LoadPoint("open", rate_rps=3.0, arrivals="trace")
    assert offsets(load, 4, rng(), trace_s=recorded) == pytest.approx((0, 0.1, 0.4, 1.0))


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (LoadPoint("open", arrivals="poisson"), "rate_rps > 0"),
        (LoadPoint("open", rate_rps=0.0, arrivals="constant"), "rate_rps > 0"),
        (LoadPoint("open", rate_rps=1.0, arrivals="gamma", burstiness=0.0), "burstiness > 0"),
        (LoadPoint("open", rate_rps=1.0, arrivals="trace"), "needs a recorded trace"),
    ],
)
def test_what_is_missing_is_named(load: LoadPoint, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        offsets(load, 3, rng())


def test_a_trace_that_cannot_serve_says_why() -> None:
    with pytest.raises(ValueError, match="has 2 arrivals, 3 are needed"):
        trace_offsets([0.0, 1.0], 3)
    with pytest.raises(ValueError, match="two different arrival times"):
        scale_for_rate([5.0, 5.0], 1.0)
    with pytest.raises(ValueError, match="finite"):
        trace_offsets([0.0, math.nan], 2)
    with pytest.raises(ValueError, match="time_scale"):
        trace_offsets([0.0], 1, time_scale=0.0)


def test_a_closed_loop_plans_no_times() -> None:
    assert offsets(LoadPoint("closed", concurrency=4), 3, rng()) == (None, None, None)


def test_a_profile_refuses_negative_rates() -> None:
    with pytest.raises(ValueError, match="finite and >= 0"):
        steady(-1.0)
    with pytest.raises(ValueError, match="at least one segment"):
        RateProfile(())


segments = st.builds(
    RateSegment,
    st.floats(0, 50),
    st.floats(0, 100),
    st.floats(0, 100),
)


@given(st.lists(segments, min_size=1, max_size=5), st.floats(0, 500))
def test_when_is_the_inverse_of_expected(pieces: list[RateSegment], requests: float) -> None:
    profile = RateProfile(tuple(pieces))
    due_s = profile.when(requests)
    if math.isfinite(due_s) and due_s < 1e6:
        assert profile.expected(due_s) == pytest.approx(requests, abs=1e-3, rel=1e-6)


@given(st.lists(segments, min_size=1, max_size=5), st.integers(1, 30))
def test_times_never_go_back(pieces: list[RateSegment], count: int) -> None:
    times = [RateProfile(tuple(pieces)).when(unit) for unit in range(count)]
    assert all(a <= b for a, b in itertools.pairwise(times))


def _floats(times: tuple[float | None, ...]) -> list[float]:
    return [time for time in times if time is not None]
