"""The null server's schedule, and that it keeps it."""

from __future__ import annotations

import pytest

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.simulated.null_process import running_null_server
from orchestrator.adapters.simulated.null_schedule import NullSchedule, read_schedule
from orchestrator.adapters.simulated.null_server import read_truth
from orchestrator.errors import DeploymentError
from tests.adapters.http.conftest import block


def test_when_chunks_are_due_and_what_they_carry() -> None:
    schedule = NullSchedule(ttft_s=0.5, gap_s=0.1, tokens_per_chunk=3)
    assert [schedule.due_s(i) for i in range(3)] == pytest.approx([0.5, 0.6, 0.7])
    assert schedule.sizes(max_tokens=8) == (3, 3, 2)
    assert schedule.sizes(max_tokens=6) == (3, 3)
    assert NullSchedule(chunks=2, tokens_per_chunk=3).sizes(max_tokens=100) == (3, 3)


def test_a_schedule_can_be_written_and_read() -> None:
    schedule = NullSchedule(0.5, 0.001, 2, 7, "reset", 3, "split")
    assert read_schedule(schedule.write(), NullSchedule()) == schedule
    assert NullSchedule().write() == ""
    assert read_schedule("gap=0.2", schedule).ttft_s == 0.5


@pytest.mark.parametrize(
    ("text", "words"),
    [("tfft=1", "no such field"), ("fault=fire", "must be one of"), ("gap=x", "float")],
)
def test_a_wrong_schedule_names_its_part(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_schedule(text, NullSchedule())


def test_the_stamps_follow_the_schedule_and_never_run_ahead_of_it() -> None:
    with running_null_server("ttft=0.05;gap=0.01") as server, HttpLoadClient(0) as client:
        (record,) = client.run_block(server.endpoint(), block(1, max_tokens=20)).requests
    truth = read_truth(record.text)
    assert len(truth.sent_s) == 20
    for i, sent_s in enumerate(truth.sent_s):
        assert sent_s - truth.received_s >= 0.05 + i * 0.01 - 1e-6


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(DeploymentError, match="no such field"), running_null_server("nonsense=1"):
        pass
