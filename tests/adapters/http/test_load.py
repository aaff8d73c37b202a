"""Closed and open loop: when requests go out, and that nobody is spared a stall."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.http.health import HealthProbe, upper_quantile, worst
from orchestrator.adapters.http.split import split_block
from orchestrator.adapters.simulated.null_process import NullProcess
from orchestrator.plan.trial import LoadPoint
from orchestrator.records import ClientHealth, RequestRecord
from tests.adapters.http.conftest import block

OPEN = LoadPoint("open", rate_rps=50.0)


def in_flight(records: tuple[RequestRecord, ...]) -> int:
    """The most requests that were out at one time."""
    steps = [(record.sent_s or 0.0, 1) for record in records]
    steps += [(record.end_s or 0.0, -1) for record in records]
    most = now = 0
    for _, step in sorted(steps, key=lambda step: (step[0], step[1])):
        now += step
        most = max(most, now)
    return most


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_closed_loop_keeps_its_number_in_flight(
    null_server: NullProcess, workers: int, concurrency: int
) -> None:
    plan = block(9, LoadPoint("closed", concurrency=concurrency))
    with HttpLoadClient(workers) as client:
        seen = client.run_block(null_server.endpoint("ttft=0.02;gap=0.005"), plan)
    assert all(record.completed and record.offset_s is None for record in seen.requests)
    assert in_flight(seen.requests) == concurrency
    assert [record.request_id for record in seen.requests] == [f"r{i}" for i in range(9)]


def test_a_freed_slot_is_used_at_once(null_server: NullProcess, client: HttpLoadClient) -> None:
    plan = block(5, LoadPoint("closed", concurrency=1))
    seen = client.run_block(null_server.endpoint("ttft=0.01"), plan)
    for before, after in zip(seen.requests, seen.requests[1:], strict=False):
        assert before.end_s is not None and after.sent_s is not None
        # Not before the slot is free; how soon after is what send lag says.
        lag_s = after.sent_s - before.end_s
        assert 0 <= lag_s <= (seen.client.send_lag_max_s or 0) + 1e-9


@pytest.mark.parametrize("workers", [0, 2])
def test_an_open_loop_does_not_wait_for_answers(null_server: NullProcess, workers: int) -> None:
    # 10 requests within 90 ms; the first answer takes 600 ms: all are out before it comes.
    plan = block(10, OPEN, offset_s=lambda i: i * 0.01)
    with HttpLoadClient(workers) as client:
        seen = client.run_block(null_server.endpoint("ttft=0.6"), plan)
    first_answer_s = min(record.chunk_s[0] for record in seen.requests)
    assert all(record.sent_s is not None for record in seen.requests)
    assert sum((record.sent_s or 0) < first_answer_s for record in seen.requests) == 10
    for i, record in enumerate(seen.requests):
        assert record.offset_s == i * 0.01
        assert record.sent_s is not None and record.sent_s >= record.offset_s


def test_a_stall_is_felt_by_every_request_that_was_due(
    null_server: NullProcess, client: HttpLoadClient
) -> None:
    """The server freezes for 0.6 s; 50 requests a second go on being due, and go on being sent."""
    times: dict[str, float] = {}

    def freeze() -> None:
        time.sleep(0.2)
        os.kill(null_server.pid, signal.SIGSTOP)
        times["frozen"] = time.time()
        time.sleep(0.6)
        times["thawed"] = time.time()
        os.kill(null_server.pid, signal.SIGCONT)

    thread = threading.Thread(target=freeze)
    thread.start()
    # Fewer than the first look for a growing queue: a freeze this long looks like one.
    plan = block(39, OPEN, offset_s=lambda i: i * 0.02)
    seen = client.run_block(null_server.endpoint("ttft=0.001"), plan)
    thread.join()
    thawed_s = times["thawed"] - seen.started_unix_s
    frozen_s = times["frozen"] - seen.started_unix_s
    due = [
        record
        for record in seen.requests
        if record.offset_s is not None and frozen_s < record.offset_s < thawed_s - 0.3
    ]
    assert len(due) > 10
    for record in due:
        assert record.completed and record.offset_s is not None and record.sent_s is not None
        # It was sent while the server stood still, and waited for the rest of the stall; a client
        # that waits for answers would have sent one request here and shown one slow answer.
        assert record.sent_s < thawed_s
        assert record.chunk_s[0] - record.offset_s >= thawed_s - record.offset_s - 0.01


def test_both_clocks_show_a_client_that_is_late(
    null_server: NullProcess, client: HttpLoadClient
) -> None:
    # Due half a second before the block starts: the client cannot but be that late.
    plan = block(2, OPEN, offset_s=lambda i: -0.5)
    seen = client.run_block(null_server.endpoint(), plan)
    for record in seen.requests:
        assert record.sent_s is not None and record.offset_s is not None
        assert record.sent_s - record.offset_s >= 0.5
        from_due_s = record.chunk_s[0] - record.offset_s
        from_sent_s = record.chunk_s[0] - record.sent_s
        assert from_due_s - from_sent_s == pytest.approx(record.sent_s - record.offset_s)
    assert seen.client.send_lag_max_s is not None and seen.client.send_lag_max_s >= 0.5


def test_memory_is_bounded_by_reading_answers_early(
    null_server: NullProcess, client: HttpLoadClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = block(6, LoadPoint("closed", concurrency=2), max_tokens=8)
    # Room for three answers of 8 chunks: the others are read as they end, and nothing is lost.
    monkeypatch.setattr("orchestrator.adapters.http.load.KEEP_BYTES", 3 * 8 * 250)
    seen = client.run_block(null_server.endpoint("gap=0.001"), plan)
    assert [(record.request_id, record.output_tokens) for record in seen.requests] == [
        (f"r{i}", 8) for i in range(6)
    ]
    assert all(record.sent_s is not None and 0 <= record.sent_s < 60 for record in seen.requests)


def test_a_busy_event_loop_shows_in_loop_lag_and_processor_time() -> None:
    async def busy() -> ClientHealth:
        probe = HealthProbe(asyncio.get_running_loop())
        probe.start()
        await asyncio.sleep(0.03)
        until_s = time.monotonic() + 0.2
        while time.monotonic() < until_s:
            pass  # nothing else runs on this loop meanwhile
        await asyncio.sleep(0.03)
        return probe.stop([0.001, 0.002])

    health = asyncio.run(busy())
    # The timer that was due at most 10 ms into the 200 ms ran after them.
    assert health.loop_lag_max_s is not None and health.loop_lag_max_s > 0.18
    assert health.cpu_fraction is not None and 0 < health.cpu_fraction <= 1.01
    assert (health.send_lag_p99_s, health.send_lag_max_s) == (0.002, 0.002)


def test_a_stall_that_is_not_over_counts() -> None:
    async def stalled_at_the_end() -> ClientHealth:
        probe = HealthProbe(asyncio.get_running_loop())
        probe.start()
        time.sleep(0.1)
        return probe.stop([])

    health = asyncio.run(stalled_at_the_end())
    assert health.loop_lag_max_s is not None and health.loop_lag_max_s > 0.08
    assert health.send_lag_max_s is None


def test_quantiles_are_values_that_were_seen() -> None:
    assert upper_quantile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.0
    assert upper_quantile([3.0, 1.0, 2.0, 4.0], 0.99) == 4.0
    assert upper_quantile(list(range(1, 201)), 0.99) == 198
    assert upper_quantile([], 0.99) is None


def test_the_health_of_several_workers_is_that_of_the_worst() -> None:
    joined = worst(
        [ClientHealth(0.1, 0.2, None, None, 0.5), ClientHealth(0.05, 0.4, 0.3, 0.3, 0.9)]
    )
    assert joined == ClientHealth(0.1, 0.4, 0.3, 0.3, 0.9)


@pytest.mark.parametrize(
    ("count", "concurrency", "workers", "expected"),
    [
        # (requests, in flight) of each worker
        (9, 3, 2, [(6, 2), (3, 1)]),
        (8, 4, 2, [(4, 2), (4, 2)]),
        (8, 1, 4, [(8, 1)]),  # one slot cannot be shared
        (2, 8, 4, [(1, 1), (1, 1)]),
        (0, 2, 2, [(0, 2)]),
    ],
)
def test_slots_are_dealt_out_and_each_gets_as_many_requests(
    count: int, concurrency: int, workers: int, expected: list[tuple[int, int]]
) -> None:
    parts = split_block(block(count, LoadPoint("closed", concurrency=concurrency)), workers)
    assert [(len(part.requests), part.load.concurrency) for part in parts] == expected


def test_an_open_loop_is_dealt_out_in_turn() -> None:
    parts = split_block(block(5, OPEN, offset_s=float), 2)
    assert [[each.offset_s for each in part.requests] for part in parts] == [[0, 2, 4], [1, 3]]
