from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.serving.stage_timer import (
    ROW,
    StageTimer,
    StageTimerExtension,
    context_bucket,
    step_of,
)


class HandClock:
    """Moved by hand; a mark may be held back, as a device's is that has not got there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reached = 1e9

    def mark(self) -> float:
        return self.now

    def passed(self, mark: float) -> bool:
        return mark <= self.reached

    def seconds(self, begin: float, end: float) -> float:
        return end - begin


def step(
    timer: StageTimer, clock: HandClock, ids: str, key: tuple[int, ...], **stages: float
) -> None:
    timer.begin(key, frozenset(ids), len(ids))
    for name, seconds in stages.items():
        clock.now += 0.001  # between stages: overhead
        with timer.stage(name):
            clock.now += seconds


def rows(timer: StageTimer) -> list[dict[str, float]]:
    return [dict(zip(ROW, row, strict=True)) for row in timer.rows()]


def test_a_step_lasts_until_the_next_one_of_the_same_requests() -> None:
    clock = HandClock()
    timer = StageTimer(clock)
    step(timer, clock, "ab", (2, 64, 0, 4), verify=0.010, sample=0.002, draft=0.003)
    clock.now += 0.004
    step(timer, clock, "ab", (2, 64, 0, 0), verify=0.008, sample=0.002)
    clock.now += 5.0  # idle: others come
    step(timer, clock, "c", (1, 32, 1, 0), verify=0.1)
    (row,) = rows(timer)
    assert (row["requests"], row["context"], row["prefill"], row["speculation_length"]) == (
        2,
        64,
        0,
        4,
    )
    assert (row["steps"], row["tokens"]) == (1, 2)
    assert row["draft_s"] == pytest.approx(0.003)
    assert row["verify_s"] == pytest.approx(0.010)
    assert row["sample_s"] == pytest.approx(0.002)
    assert row["step_s"] == pytest.approx(0.015 + 3 * 0.001 + 0.004)
    assert row["step_s_squared"] == pytest.approx(row["step_s"] ** 2)


def test_a_step_that_the_device_has_not_finished_is_not_waited_for() -> None:
    clock = HandClock()
    timer = StageTimer(clock)
    clock.reached = 0.0
    for _ in range(3):
        step(timer, clock, "a", (1, 64, 0, 0), verify=0.01)
    assert rows(timer) == []
    clock.reached = 1e9
    (row,) = rows(timer)
    assert row["steps"] == 2


@pytest.mark.parametrize(
    ("tokens", "bucket"), [(0, 1), (1, 1), (2, 2), (64, 64), (65, 128), (64.5, 128)]
)
def test_contexts_fall_into_powers_of_two(tokens: float, bucket: int) -> None:
    assert context_bucket(tokens) == bucket


@dataclass
class Scheduled:
    """The fields of vLLM's SchedulerOutput that are read."""

    num_scheduled_tokens: dict[str, int]
    scheduled_spec_decode_tokens: dict[str, list[int]] = field(default_factory=dict)
    scheduled_new_reqs: list[Any] = field(default_factory=list)
    computed: list[int] = field(default_factory=list)

    @property
    def scheduled_cached_reqs(self) -> Any:
        return SimpleNamespace(num_computed_tokens=self.computed)


@pytest.mark.parametrize(
    ("scheduled", "key"),
    [
        (Scheduled({"a": 1, "b": 1}, computed=[60, 68]), (2, 64, 0, 0)),
        (Scheduled({"a": 5, "b": 1}, {"a": [1, 2, 3, 4]}, computed=[60, 70]), (2, 128, 0, 4)),
        (Scheduled({"a": 50}, scheduled_new_reqs=["a"]), (1, 0, 1, 0)),
        (Scheduled({"a": 40, "b": 1}, computed=[16, 90]), (2, 64, 1, 0)),  # a chunk of prompt
    ],
)
def test_what_a_step_is_called(scheduled: Scheduled, key: tuple[int, ...]) -> None:
    assert step_of(scheduled)[0] == key


def test_a_runner_that_names_no_phases_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("orchestrator.serving.stage_timer.RUNNER_MODULE", "types")
    worker = StageTimerExtension()
    worker.model_runner = SimpleNamespace()
    said = worker.orchestrator_time_stages()
    assert said is not None
    assert "does not name its phases" in said
    assert worker.orchestrator_stages() == []
