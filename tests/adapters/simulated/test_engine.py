"""Timelines drawn by hand: every step takes 1 ms unless said otherwise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.adapters.simulated.drive import drive
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.truth import expected_tokens_per_step
from orchestrator.records import RequestError
from tests.adapters.simulated.build import MILLISECOND_STEPS, engine, run


def milliseconds(job: Job) -> list[float]:
    return [round(at_s * 1000, 6) for at_s in job.chunk_s]


def test_without_speculation_a_step_gives_one_token() -> None:
    running, job = engine(**MILLISECOND_STEPS), Job("a", 10, 4)
    run(running, job)
    assert milliseconds(job) == [1, 2, 3, 4]
    assert job.chunk_tokens == [1, 1, 1, 1]
    assert running.acceptance.drafts == 0


def test_full_acceptance_at_length_3_gives_exactly_4_tokens_a_step() -> None:
    running, job = engine(3, acceptance=1.0, **MILLISECOND_STEPS), Job("a", 10, 9)
    run(running, job)
    assert milliseconds(job) == [1, 2, 3]
    assert job.chunk_tokens == [1, 4, 4]
    accepted = running.acceptance
    assert (accepted.drafts, accepted.draft_tokens, accepted.accepted_tokens) == (2, 6, 6)
    assert accepted.accepted_per_position == (2, 2, 2)


def test_the_answer_is_cut_at_its_limit_and_the_counters_are_not() -> None:
    running, job = engine(3, acceptance=1.0, **MILLISECOND_STEPS), Job("a", 10, 3)
    run(running, job)
    assert job.chunk_tokens == [1, 2]
    assert running.counters.generation_tokens == 3
    assert running.acceptance.accepted_tokens == 3, "vLLM counts what was verified, not delivered"


def test_zero_acceptance_is_slower_by_exactly_draft_and_overhead() -> None:
    costs = {**MILLISECOND_STEPS, "draft_fixed_s": 0.0002, "speculation_overhead_s": 0.0001}
    base, spec = Job("a", 10, 6), Job("a", 10, 6)
    run(engine(0, **costs), base)
    run(engine(3, acceptance=0.0, **costs), spec)
    assert spec.chunk_tokens == base.chunk_tokens == [1] * 6
    # 3 draft passes of 0.2 ms and 0.1 ms of overhead in each of the 5 decoding steps.
    assert np.diff(spec.chunk_s) - np.diff(base.chunk_s) == pytest.approx([0.0007] * 5)


def test_step_time_is_linear_in_cache_and_batch() -> None:
    costs = {"target_kv_s": 1e-5, "target_token_s": 1e-4, "target_fixed_s": 1e-3}
    job = Job("a", 10, 3)
    run(engine(**costs), job)
    # Prompt: nothing cached, 10 tokens: 2.0 ms. Then 1 token with 10, then 11 cached.
    assert milliseconds(job) == [2.0, pytest.approx(3.2), pytest.approx(4.41)]


def test_a_third_request_waits_for_one_of_two_slots() -> None:
    running = engine(engine={"max_num_seqs": 2}, **MILLISECOND_STEPS)
    short, long, queued = Job("short", 5, 2), Job("long", 5, 4), Job("queued", 5, 1)
    run(running, short, long, queued)
    assert milliseconds(short) == [1, 2]
    assert milliseconds(long) == [1, 2, 3, 4]
    assert milliseconds(queued) == [3], "the first step after a slot is free"


def test_a_long_prompt_is_read_in_chunks_beside_those_that_decode() -> None:
    running = engine(engine={"max_num_batched_tokens": 10}, **MILLISECOND_STEPS)
    first, long = Job("first", 5, 5), Job("long", 20, 1)
    drive(running, [(0.0, first), (0.0005, long)])
    # From the second step on: 1 token of `first` and 9 of the prompt; 20 = 9 + 9 + 2.
    assert milliseconds(first) == [1, 2, 3, 4, 5]
    assert milliseconds(long) == [4]


def test_without_chunked_prefill_a_prompt_waits_until_it_fits_whole() -> None:
    limits = {"max_num_batched_tokens": 10, "enable_chunked_prefill": False}
    running = engine(engine=limits, **MILLISECOND_STEPS)
    first, whole, never = Job("first", 5, 3), Job("whole", 10, 1), Job("never", 11, 1)
    run(running, first, whole, never)
    assert milliseconds(first) == [1, 2, 3]
    assert milliseconds(whole) == [4], "10 tokens fit only when nobody decodes"
    assert never.error is RequestError.HTTP_STATUS and never.http_status == 400


def test_the_latest_request_is_preempted_when_the_cache_runs_out() -> None:
    running = engine(kv_capacity_tokens=20, **MILLISECOND_STEPS)
    early, late = Job("early", 8, 6), Job("late", 8, 6)
    run(running, early, late)
    # 8 + 8 cached after the prompts; each step adds 2; the third would need 22 of 20.
    assert milliseconds(early) == [1, 2, 3, 4, 5, 6]
    assert (late.preemptions, running.counters.preemptions) == (1, 1)
    assert milliseconds(late)[:3] == [1, 2, 3]
    assert milliseconds(late)[3] == 7, "its cache is computed again once `early` has gone"
    assert sum(late.chunk_tokens) == 6, "a preempted request loses time, no tokens"
    assert running.scheduler.kv_used == 0


def test_a_request_that_can_never_fit_is_refused_with_the_numbers() -> None:
    running = engine(kv_capacity_tokens=20, **MILLISECOND_STEPS)
    job = Job("a", 15, 6)
    run(running, job)
    assert (job.error, job.http_status) == (RequestError.HTTP_STATUS, 400)
    assert job.error_text == "prompt 15 + max_tokens 6 exceeds 20"


def test_the_schedule_turns_speculation_off_at_a_batch_size() -> None:
    how = {"acceptance": 1.0, "schedule": [[1, 1, 3], [2, 64, 0]], **MILLISECOND_STEPS}
    alone = Job("alone", 5, 9)
    run(engine(3, **how), alone)
    assert alone.chunk_tokens == [1, 4, 4]
    running, a, b = engine(3, **how), Job("a", 5, 4), Job("b", 5, 8)
    run(running, a, b)
    assert a.chunk_tokens == [1, 1, 1, 1]
    assert b.chunk_tokens == [1, 1, 1, 1, 4], "alone again after a has gone"
    assert running.acceptance.drafts == 1


def test_acceptance_depends_on_category_and_temperature() -> None:
    how = {
        "acceptance": 1.0,
        "acceptance_by_category": {"poem": [1.0, 0.0]},
        "temperature_penalty": 50.0,
        **MILLISECOND_STEPS,
    }
    chat, poem = Job("a", 5, 10, category="chat"), Job("b", 5, 10, category="poem")
    hot = Job("c", 5, 10, category="chat", temperature=1.0)
    run(engine(3, **how), chat, poem, hot)
    assert chat.chunk_tokens == [1, 4, 4, 1]
    assert poem.chunk_tokens == [1, 2, 2, 2, 2, 1]
    assert hot.chunk_tokens == [1] * 10


def test_accepted_counts_have_the_conditional_rates_within_monte_carlo_error() -> None:
    rates = [0.8, 0.5, 0.25]
    running = engine(3, acceptance=rates, **MILLISECOND_STEPS)
    run(running, *[Job(str(i), 5, 2000) for i in range(20)])
    accepted = running.acceptance
    n = accepted.drafts
    for count, chance in zip(accepted.accepted_per_position, np.cumprod(rates), strict=True):
        standard_error = (chance * (1 - chance) / n) ** 0.5
        assert abs(count / n - chance) < 4 * standard_error
    mean = 1 + accepted.accepted_tokens / n
    # Var(tokens) < K²/4, so 4 standard errors are below 4 · 1.5 / √n.
    assert abs(mean - expected_tokens_per_step(rates)) < 6 / n**0.5


def test_noise_has_mean_one_and_a_seed() -> None:
    times = []
    for seed in ("a", "a", "b"):
        job = Job("x", 5, 5000)
        how = {"jitter_sigma": 0.2, "slow_jitter_sigma": 0.05, "slow_jitter_correlation_s": 0.01}
        run(engine(seed=seed, **how, **MILLISECOND_STEPS), job)
        times.append(job.chunk_s)
    assert times[0] == times[1] != times[2]
    assert times[0][-1] / 5000 == pytest.approx(0.001, rel=0.02)
    logs = np.log(np.diff(times[0]))
    assert logs.std() == pytest.approx((0.2**2 + 0.05**2) ** 0.5, rel=0.05)


def test_slow_noise_stays_for_about_its_correlation_time() -> None:
    job = Job("x", 5, 20_000)
    how = {"slow_jitter_sigma": 0.1, "slow_jitter_correlation_s": 0.02}
    run(engine(**how, **MILLISECOND_STEPS), job)
    logs = np.log(np.diff(job.chunk_s))
    lag_20 = float(np.corrcoef(logs[:-20], logs[20:])[0, 1])
    # exp(−20 ms / 20 ms); 20 s hold about 1,000 independent stretches.
    assert lag_20 == pytest.approx(np.exp(-1), abs=0.12)


def test_the_tight_loop_and_single_steps_are_one_and_the_same_engine() -> None:
    how = {"profile": "llama-8b-h100", "jitter_sigma": 0.1, "slow_jitter_sigma": 0.1}
    stepped, ran = ([Job(str(i), 50, 40 + i) for i in range(3)] for _ in range(2))
    by_step = engine(3, **how)
    for job in stepped:
        by_step.submit(job)
    while by_step.scheduler.has_work:
        by_step.step()
    run(engine(3, **how), *ran)
    for a, b in zip(stepped, ran, strict=True):
        assert a.chunk_tokens == b.chunk_tokens
        assert a.chunk_s == pytest.approx(b.chunk_s, rel=1e-12)


requests_in_a_run = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.integers(1, 30),
        st.floats(0, 0.05),
        st.sampled_from(["chat", "code"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=120, deadline=None)
@given(
    requests=requests_in_a_run,
    length=st.integers(0, 5),
    rates=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    slots=st.integers(1, 6),
    budget=st.integers(8, 64),
    capacity=st.integers(75, 200),
)
def test_tokens_are_conserved_and_time_goes_forward(
    requests: list[tuple[int, int, float, str]],
    length: int,
    rates: list[float],
    slots: int,
    budget: int,
    capacity: int,
) -> None:
    running = engine(
        length,
        acceptance=rates,
        jitter_sigma=0.3,
        kv_capacity_tokens=capacity,
        engine={"max_num_seqs": slots, "max_num_batched_tokens": budget},
    )
    arrivals = [(at, Job(str(i), p, o, category=c)) for i, (p, o, at, c) in enumerate(requests)]
    drive(running, arrivals)
    jobs = [job for _, job in arrivals]
    assert all(job.error is None and sum(job.chunk_tokens) == job.max_tokens for job in jobs)
    assert running.counters.generation_tokens == sum(o for _, o, _, _ in requests)
    assert running.counters.prompt_tokens == sum(p for p, _, _, _ in requests)
    assert running.counters.requests_finished == len(jobs)
    for at_s, job in arrivals:
        assert job.chunk_s[0] > at_s and job.end_s == job.chunk_s[-1]
        assert all(b > a for a, b in pairwise(job.chunk_s))
        assert all(1 <= n <= length + 1 for n in job.chunk_tokens)
    accepted = running.acceptance
    assert accepted.accepted_tokens <= accepted.draft_tokens == accepted.drafts * length
    assert sum(accepted.accepted_per_position) == accepted.accepted_tokens
    by_position = [accepted.drafts, *accepted.accepted_per_position]
    assert all(a >= b for a, b in pairwise(by_position))
    assert running.scheduler.kv_used == 0
