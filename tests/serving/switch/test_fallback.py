"""An arm dies, hangs, comes back: nobody who could be served elsewhere fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.serving.switch.room import (
    HEALTH,
    Engine,
    Got,
    Switch,
    ask,
    engines,
    question,
    switch,
    wait_for,
)

pytestmark = pytest.mark.slow  # a switch and two engines, on real time

PERIOD_S = HEALTH["period_s"]
BUSY_S = 1.5
"""For a machine that has other things to do; a period that was not kept would show in the figure
that the switch itself gives, on a quiet machine."""


@pytest.fixture(scope="module")
def arms(folder: Path) -> Iterator[dict[str, Engine]]:
    with engines(folder) as both:
        yield both


@pytest.fixture
def front(arms: dict[str, Engine], folder: Path) -> Iterator[Switch]:
    with switch(folder) as one:
        one.set(mode="fixed", share=1.0)
        wait_for(lambda: one.board.standing().share == 1.0)
        yield one


def test_a_killed_speculative_arm_fails_only_what_is_inside_it(
    front: Switch, arms: dict[str, Engine]
) -> None:
    with ThreadPoolExecutor(2) as threads:
        long = question(max_tokens=3000, stream=True, ignore_eos=True)
        inside = threads.submit(ask, front.port, long)
        wait_for(lambda: arms["speculative"].running == 1)
        wait_for(lambda: front.board.arms["speculative"].in_flight == 1)
        arms["speculative"].kill()
        after = [ask(front.port, question()) for _ in range(5)]
        lost = inside.result()

    assert [(got.status, got.arm) for got in after] == [(200, "baseline")] * 5
    assert lost.status == 200
    assert b'"type":"BadGatewayError"' in lost.body and b"[DONE]" not in lost.body
    wait_for(lambda: "arm" in front.keeper.verdict.closed_by)
    assert any("speculative down" in alarm for alarm in front.keeper.verdict.alarms)

    arms["speculative"].start()
    wait_for(lambda: front.keeper.verdict.share == 1.0)
    wait_for(lambda: ask(front.port, question()).arm == "speculative")
    events = [event.what for event in front.keeper.store.events()]
    order = ["speculative_down", "fallback", "speculative_up", "return"]
    assert [what for what in events if what in order][-4:] == order


def test_a_hanging_speculative_arm_means_baseline_within_a_period(
    front: Switch, arms: dict[str, Engine]
) -> None:
    assert ask(front.port, question()).arm == "speculative"
    arms["speculative"].freeze()
    with ThreadPoolExecutor(4) as threads:
        # They hang with it; nothing has come of them, so the baseline takes them over.
        inside = [threads.submit(ask, front.port, question(stream=bool(i % 2))) for i in range(4)]
        took_s = wait_for(lambda: not front.board.arms["speculative"].up)
        answers = [each.result() for each in inside]
    arms["speculative"].thaw()

    assert took_s < PERIOD_S + BUSY_S
    assert [(got.status, got.arm) for got in answers] == [(200, "baseline")] * 4
    wait_for(lambda: front.board.arms["speculative"].up)


def test_a_dead_baseline_means_speculative_and_an_alarm(
    front: Switch, arms: dict[str, Engine]
) -> None:
    front.set(mode="off")
    assert ask(front.port, question()).arm == "baseline"
    arms["baseline"].kill()
    try:
        answers = [ask(front.port, question()) for _ in range(3)]
        wait_for(lambda: bool(front.keeper.verdict.alarms))
        state = front.admin("GET", "/admin/state")[1]
    finally:
        arms["baseline"].start()

    assert [(got.status, got.arm) for got in answers] == [(200, "speculative")] * 3
    assert state["alarms"] == ["baseline down: the speculative arm answers everybody"]
    assert not state["arms"]["baseline"]["up"]
    wait_for(lambda: ask(front.port, question()).arm == "baseline")


def test_both_dead_is_said_and_ends_when_one_is_back(
    front: Switch, arms: dict[str, Engine]
) -> None:
    for arm in arms.values():
        arm.kill()
    got = ask(front.port, question())
    health = ask(front.port, method="GET", path="/health")
    for arm in arms.values():
        arm.start()

    assert got.status == 502
    assert got.said["error"]["type"] == "BadGatewayError"
    assert health.status == 503
    wait_for(lambda: ask(front.port, question()).status == 200)


def test_long_answers_that_are_not_streamed_are_no_hang(
    front: Switch, arms: dict[str, Engine]
) -> None:
    """Nothing comes for several periods, but the engine's counters go on."""
    assert front.board.arms["speculative"].up
    slow = arms["speculative"].live
    slow._scale *= 60  # its steps take 60 times as long
    slow._origin_s = None
    try:
        fell = threading.Event()
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(ask, front.port, question(max_tokens=80, ignore_eos=True))
            while not asked.done():
                if not front.board.arms["speculative"].up:
                    fell.set()
            got: Got = asked.result()
    finally:
        slow._scale /= 60
        slow._origin_s = None

    assert (got.status, got.arm) == (200, "speculative")
    assert not fell.is_set()


def test_running_requests_end_where_they_began_when_the_switch_turns(
    front: Switch, arms: dict[str, Engine]
) -> None:
    with ThreadPoolExecutor(1) as threads:
        long = question(max_tokens=500, stream=True, ignore_eos=True)
        running = threads.submit(ask, front.port, long)
        wait_for(lambda: arms["speculative"].running == 1)
        assert front.admin("POST", "/admin/pause", {"why": "a test"})[0] == 200
        wait_for(lambda: front.board.standing().share == 0.0)
        meanwhile = ask(front.port, question())
        ended = running.result()
    front.admin("POST", "/admin/resume", {"why": "a test"})

    assert meanwhile.arm == "baseline"
    assert ended.arm == "speculative"
    assert ended.body.endswith(b"data: [DONE]\n\n")
