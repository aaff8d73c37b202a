"""Planted faults strike at their moment; planted drifts have their rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.adapters.simulated.drive import drive
from orchestrator.adapters.simulated.job import Job
from orchestrator.plan.block import Timeouts
from orchestrator.records import RequestError
from tests.adapters.simulated.build import MILLISECOND_STEPS, engine, run

IMPATIENT = Timeouts(first_token_s=0.5, stall_s=0.2, total_s=2.0)


def broken(length: int = 0, drifts: dict[str, Any] | None = None, **faults: Any) -> Any:
    return engine(length, faults=faults, drifts=drifts or {}, **MILLISECOND_STEPS)


def test_a_crash_resets_whoever_is_served_and_refuses_whoever_comes_later() -> None:
    running = broken(crash_at_s=0.0035)
    served, late = Job("served", 5, 10), Job("late", 5, 10)
    drive(running, [(0.0, served), (0.010, late)])
    assert served.error is RequestError.RESET
    assert len(served.chunk_s) == 3 and served.end_s == pytest.approx(0.0035)
    assert (late.error, late.end_s) == (RequestError.CONNECT, pytest.approx(0.010))
    assert running.crashed


def test_a_hang_lasts_until_the_clients_give_up() -> None:
    running = broken(hang_from_s=0.0025)
    served, late = Job("served", 5, 10), Job("late", 5, 10)
    drive(running, [(0.0, served), (0.1, late)], timeouts=IMPATIENT)
    assert len(served.chunk_s) == 2
    assert (served.error, served.end_s) == (RequestError.STALL_TIMEOUT, pytest.approx(0.202))
    assert (late.error, late.end_s) == (RequestError.FIRST_TOKEN_TIMEOUT, pytest.approx(0.6))
    assert running.hung and not running.scheduler.has_work


def test_a_hang_without_a_timeout_is_an_error_not_an_endless_loop() -> None:
    with pytest.raises(RuntimeError, match="no timeout ends the wait"):
        run(broken(hang_from_s=0.0), Job("a", 5, 10))


def test_a_crash_ends_a_hang() -> None:
    running = broken(hang_from_s=0.001, crash_at_s=0.05)
    job = Job("a", 5, 10)
    drive(running, [(0.0, job), (0.06, Job("b", 5, 1))], timeouts=IMPATIENT)
    assert job.error is RequestError.RESET


def test_a_stall_is_felt_by_every_request_that_was_due() -> None:
    running = broken(stall_at_s=0.0025, stall_s=0.1)
    a, b = Job("a", 5, 5), Job("b", 5, 5)
    run(running, a, b)
    for job in (a, b):
        assert np.diff(job.chunk_s) == pytest.approx([0.001, 0.101, 0.001, 0.001])


def test_a_stall_longer_than_the_clients_patience_loses_the_late_chunk() -> None:
    job = Job("a", 5, 5)
    run(broken(stall_at_s=0.0025, stall_s=1.0), job, timeouts=IMPATIENT)
    assert (job.error, job.end_s) == (RequestError.STALL_TIMEOUT, pytest.approx(0.202))
    assert len(job.chunk_s) == 2, "what came after the client had gone was not seen"


def test_the_total_time_limit_ends_a_request_that_still_makes_progress() -> None:
    job = Job("a", 5, 5000)
    run(broken(), job, timeouts=Timeouts(total_s=0.1))
    assert job.error is RequestError.TOTAL_TIMEOUT
    assert len(job.chunk_s) == pytest.approx(100, abs=1)


def test_the_nth_request_fails_and_the_others_do_not() -> None:
    jobs = [Job(str(i), 5, 2) for i in range(3)]
    run(broken(error_on_request=2), *jobs)
    assert [job.http_status for job in jobs] == [None, 500, None]


def test_the_nth_request_breaks_in_mid_stream() -> None:
    jobs = [Job(str(i), 5, 4) for i in range(2)]
    run(broken(error_mid_stream_on_request=1), *jobs)
    assert (jobs[0].error, len(jobs[0].chunk_s)) == (RequestError.STREAM_ERROR, 1)
    assert jobs[1].error is None


def test_acceptance_decays_in_one_category_only() -> None:
    # A rate of 3600·ln 2 an hour halves acceptance every second of the engine's life.
    rate = 3600 * float(np.log(2))
    running = engine(
        1,
        acceptance=0.8,
        drifts={"acceptance_decay_by_category": {"code": rate}},
        **MILLISECOND_STEPS,
    )
    observed = []
    for start_s in (0.0, 2.0):
        running.idle_until(start_s)
        for category in ("chat", "code"):
            before = running.acceptance.accepted_tokens, running.acceptance.drafts
            jobs = [Job(str(i), 5, 50, category=category) for i in range(200)]
            drive(running, [(running.now_s, job) for job in jobs])
            accepted = running.acceptance.accepted_tokens - before[0]
            observed.append(accepted / (running.acceptance.drafts - before[1]))
    chat, code, chat_later, code_later = observed
    assert chat == pytest.approx(0.8, abs=0.02) == chat_later
    assert code == pytest.approx(0.8, abs=0.05)
    assert code_later == pytest.approx(0.2, abs=0.03), "two seconds later: a quarter"


def test_step_time_grows_with_the_engines_age() -> None:
    running, early, late = broken(drifts={"step_growth_per_hour": 3600.0}), *two_jobs()
    drive(running, [(0.0, early), (1.0, late)])
    assert np.diff(early.chunk_s)[0] == pytest.approx(0.001, rel=0.01)
    assert np.diff(late.chunk_s)[0] == pytest.approx(0.002, rel=0.01), "+100 % a second"


def two_jobs() -> tuple[Job, Job]:
    return Job("early", 5, 3), Job("late", 5, 3)


@pytest.mark.parametrize(
    ("when", "leaked_s"), [("always", 0.020), ("speculating", 0.012), ("not_speculating", 0.003)]
)
def test_memory_leaks_at_its_rate_where_planted(when: str, leaked_s: float) -> None:
    # One alone: 11 steps of 1 ms at length 1; idle for 5 ms; two together: their prompts in a step
    # whose length is still that of the batch before it (nobody: 1), then 3 steps at length 0.
    running = engine(
        1,
        acceptance=0.0,
        schedule=[[1, 1, 1], [2, 8, 0]],
        drifts={"leak_bytes_per_s": 1e6, "leak_when": when},
        **MILLISECOND_STEPS,
    )
    before = running.memory_bytes
    run(running, Job("alone", 5, 11))
    running.idle_until(0.016)
    drive(running, [(0.016, Job("a", 5, 4)), (0.016, Job("b", 5, 4))])
    assert running.memory_bytes - before == pytest.approx(leaked_s * 1e6, rel=1e-6)
