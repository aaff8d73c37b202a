"""Ending a lost rung early, from events in the order of time."""

from __future__ import annotations

import pytest

from orchestrator.analyse.growth import Timeline
from orchestrator.analyse.saturation_monitor import SaturationMonitor
from tests.analyse.queues import queue


def play(monitor: SaturationMonitor, timeline: Timeline) -> int | None:
    """Feed a block; how many requests had been sent when it was given up, None if never."""
    events = sorted(
        [(at, 0, i) for i, at in enumerate(timeline.first_token_s)]
        + [(at, 1, i) for i, at in enumerate(timeline.left_s)]
        + [(at, 2, i) for i, at in enumerate(timeline.came_s)]
    )
    sent = 0
    for at, kind, i in events:
        if kind == 0:
            monitor.first_token(i, at)
        elif kind == 1:
            monitor.left(i, at)
        else:
            monitor.came(i, at)
            sent += 1
        if monitor.saturated:
            return sent
    return None


def test_double_load_is_given_up_early() -> None:
    """1,000 requests at twice the capacity: found in the first tenth."""
    monitor = SaturationMonitor()
    sent = play(monitor, queue(1, 1000, 2.0))
    assert sent is not None and sent <= 100
    assert monitor.finding is not None and "stay" in monitor.finding.why


def test_half_load_is_not_given_up() -> None:
    assert play(SaturationMonitor(), queue(1, 1000, 0.5)) is None


def test_the_finding_stays() -> None:
    monitor = SaturationMonitor()
    play(monitor, queue(1, 200, 2.0))
    found = monitor.finding
    for i in range(1000, 1400):
        monitor.came(i, 1000.0 + i)
        monitor.first_token(i, 1000.0 + i)
        monitor.left(i, 1000.0 + i)
    assert monitor.finding is found is not None


def test_it_does_not_look_before_the_first_look() -> None:
    monitor = SaturationMonitor(first_look=40)
    for i in range(39):
        monitor.came(i, float(i))
        monitor.left(i, float(i), turned_away=True)
    assert not monitor.saturated
    monitor.came(39, 39.0)
    assert monitor.finding is not None and monitor.finding.turned_away == 39


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "at_least", "at_most"), [(0.8, 0.0, 0.03), (1.5, 0.75, 1.0), (2.0, 0.97, 1.0)]
)
def test_share_of_blocks_given_up(load: float, at_least: float, at_most: float) -> None:
    """200 blocks of 400 requests, exponential service: the hardest there is."""
    given_up = sum(play(SaturationMonitor(), queue(s, 400, load)) is not None for s in range(200))
    assert at_least * 200 <= given_up <= at_most * 200
