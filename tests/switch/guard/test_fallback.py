"""To the baseline at once, back slowly, and never to and fro."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.switch.guard.fallback import Fallback
from orchestrator.switch.guard.settings import CoolDown
from orchestrator.switch.guarding import Breach

SETTINGS = CoolDown(hold_s=10.0, first_s=100.0, factor=2.0, max_s=1000.0, calm_s=5000.0)
WHY = [Breach(0.0, "errors", "everything failed")]


def test_the_whole_way_there_and_back() -> None:
    fallback = Fallback(SETTINGS)
    fallback.tick(0.0)
    assert fallback.state == "healthy"
    fallback.breach(50.0, WHY)
    states = []
    for now_s in (50.0, 59.0, 60.0, 149.0, 150.0):
        fallback.tick(now_s)
        states.append(fallback.state)
    assert states == ["breached", "breached", "cooling", "cooling", "probing"]
    assert fallback.reasons == tuple(WHY)
    fallback.pass_probe(200.0)
    assert (fallback.state, fallback.reasons, fallback.since_s) == ("healthy", (), 200.0)


def test_each_failure_doubles_the_wait_up_to_the_longest_and_calm_takes_it_back() -> None:
    fallback = Fallback(SETTINGS)
    fallback.breach(0.0, WHY)
    waits, now_s = [100.0], 100.0
    for _ in range(5):
        fallback.tick(now_s)
        assert fallback.state == "probing"
        fallback.fail_probe(now_s, [])
        assert fallback.probe_at_s is not None
        waits.append(fallback.probe_at_s - now_s)
        now_s = fallback.probe_at_s
    assert waits == [100, 200, 400, 800, 1000, 1000]
    fallback.tick(now_s)
    fallback.pass_probe(now_s)
    assert fallback.steps == 6
    fallback.tick(now_s + 4999)
    assert fallback.steps == 6
    fallback.tick(now_s + 10_000)
    assert fallback.steps == 4


def test_a_probe_that_saw_too_little_costs_no_growth() -> None:
    fallback = Fallback(SETTINGS)
    fallback.breach(0.0, WHY)
    fallback.tick(100.0)
    fallback.put_off_probe(150.0)
    assert (fallback.state, fallback.probe_at_s, fallback.steps) == ("cooling", 250.0, 1)


@given(st.integers(1, 10_000), st.floats(1.0, 3.0))
def test_however_often_it_fails_the_wait_is_finite(steps: int, factor: float) -> None:
    fallback = Fallback(SETTINGS.model_copy(update={"factor": factor}))
    fallback.steps = steps
    assert SETTINGS.first_s <= fallback.cool_down_s <= SETTINGS.max_s


@given(st.lists(st.sampled_from(["breach", "pass", "fail", "wait"]), max_size=300))
def test_it_never_flaps(events: list[str]) -> None:
    fallback, returns = Fallback(SETTINGS), []
    for step, event in enumerate(events):
        now_s = step * 7.0
        fallback.tick(now_s)
        if event == "breach" and fallback.state == "healthy":
            fallback.breach(now_s, WHY)
        elif event == "fail" and fallback.state == "probing":
            fallback.fail_probe(now_s, WHY)
        elif event == "pass" and fallback.state == "probing":
            fallback.pass_probe(now_s)
            returns.append(now_s)
    gaps = [b - a for a, b in pairwise(returns)]
    # Every return follows a cool-down, each at least twice the one before until the longest.
    assert all(
        gap >= min(SETTINGS.first_s * 2.0 ** (i + 1), SETTINGS.max_s) for i, gap in enumerate(gaps)
    )


def test_a_snapshot_brings_it_back_in_mid_cool_down() -> None:
    fallback, again = Fallback(SETTINGS), Fallback(SETTINGS)
    fallback.breach(50.0, WHY)
    fallback.tick(70.0)
    again.restore(fallback.snapshot())
    assert again.snapshot() == fallback.snapshot()
    again.tick(150.0)
    assert again.state == "probing"


@pytest.mark.parametrize("wrong", [{"state": "merry"}, {"reasons": [{"x": 1}]}, {"steps": None}])
def test_what_is_no_snapshot_is_refused_and_changes_nothing(wrong: dict[str, object]) -> None:
    fallback = Fallback(SETTINGS)
    before = fallback.snapshot()
    with pytest.raises((KeyError, TypeError, ValueError)):
        fallback.restore({**before, **wrong})
    assert fallback.snapshot() == before
