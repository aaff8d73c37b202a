"""The closed forms against hand calculation, published figures and long simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.simulated.profile import FAST, LLAMA_8B_H100
from orchestrator.adapters.simulated.truth import (
    break_even_acceptance,
    break_even_acceptance_length,
    decode_path,
    expected_tokens_per_step,
    steady_state,
    tokens_per_step_distribution,
    true_speedup,
)
from orchestrator.adapters.simulated.truth_by_simulation import (
    RequestShape,
    break_even_rps,
    knee_rps,
    run_closed,
    run_open,
    speedup_at_rate,
)
from tests.adapters.simulated.build import configuration

SHAPE = RequestShape(prompt_tokens=200, output_tokens=64)


@pytest.mark.parametrize(
    ("context", "batch", "published"),
    [
        (500, 1, 1.31),
        (500, 128, 1.84),
        (500, 512, 2.26),
        (8000, 1, 1.30),
        (8000, 128, 1.25),
        (8000, 512, 1.25),
    ],
)
def test_break_even_acceptance_length_of_llama_8b_on_h100_at_length_3(
    context: int, batch: int, published: float
) -> None:
    ours = break_even_acceptance_length(
        LLAMA_8B_H100, batch=batch, context=context, length=3, method="eagle"
    )
    assert round(ours, 2) == published


def test_break_even_of_the_fast_profile_by_hand() -> None:
    # Batch 2, K 3: verify 1 + 8·0.02 ms, draft 3·0.1 ms, against 1 + 2·0.02 ms.
    ours = break_even_acceptance_length(FAST, batch=2, context=100, length=3)
    assert ours == pytest.approx((1.16 + 0.3) / 1.04)


def test_a_lookup_costs_a_share_of_the_verifying_pass() -> None:
    ours = break_even_acceptance_length(FAST, batch=1, context=100, length=4, method="ngram")
    assert ours == pytest.approx(1.1 * 1.005875 / 1.02)


def test_tokens_per_step_is_the_sum_of_products_plus_one() -> None:
    assert expected_tokens_per_step([0.8, 0.5]) == pytest.approx(1 + 0.8 + 0.4)
    assert expected_tokens_per_step([]) == 1
    assert expected_tokens_per_step([0.7] * 3) == pytest.approx((1 - 0.7**4) / 0.3)
    assert tokens_per_step_distribution([0.8, 0.5]) == pytest.approx((0.2, 0.4, 0.4))


@given(st.lists(st.floats(0, 1), max_size=8))
def test_the_distribution_of_tokens_per_step_has_the_expected_mean(rates: list[float]) -> None:
    chances = tokens_per_step_distribution(rates)
    assert sum(chances) == pytest.approx(1)
    mean = sum((i + 1) * p for i, p in enumerate(chances))
    assert mean == pytest.approx(expected_tokens_per_step(rates))


def test_break_even_acceptance_inverts_the_expected_tokens() -> None:
    acceptance = break_even_acceptance(LLAMA_8B_H100, batch=128, context=500, length=3)
    assert acceptance is not None
    assert expected_tokens_per_step([acceptance] * 3) == pytest.approx(1.8425, abs=1e-3)


def test_break_even_acceptance_is_undefined_where_even_full_acceptance_loses() -> None:
    assert break_even_acceptance(FAST, batch=10_000, context=0, length=1, method=None) is not None
    slow_draft = configuration(1, draft_fixed_s=0.01).model
    assert break_even_acceptance(slow_draft, batch=1, context=0, length=1) is None


def test_decode_path_by_hand() -> None:
    assert decode_path(10, 4, []) == (3.0, 11.0)  # contexts 10, 11, 12
    assert decode_path(10, 4, [1.0]) == (2.0, 11.0)  # 2 tokens, then 1: contexts 10, 12
    # Half the steps give 2 tokens: N(1) = 1, N(2) = 1 + N(1)/2 = 1.5, contexts 10 and 11.
    steps, context = decode_path(10, 3, [0.5])
    assert (steps, context) == (1.5, pytest.approx((10 + 0.5 * 11) / 1.5))
    assert decode_path(10, 1, [0.5]) == (0.0, 10.0)


@pytest.mark.parametrize(("batch", "requests"), [(1, 400), (4, 1600), (16, 3200)])
@pytest.mark.parametrize("length", [0, 3])
def test_long_simulation_agrees_with_the_steady_state(
    batch: int, requests: int, length: int
) -> None:
    """Tolerance: 4 standard errors of the mean over requests, and 0.5 % for the ends of the run."""
    truth = steady_state(
        LLAMA_8B_H100, batch=batch, prompt_tokens=200, output_tokens=64, length=length
    )
    how = {"profile": "llama-8b-h100", "jitter_sigma": 0.05, "method": "eagle"}
    seen = run_closed(configuration(length, **how), SHAPE, concurrency=batch, requests=requests)
    assert truth.tpot_s is not None
    error = float(seen.tpot_s.std()) / math.sqrt(requests) / truth.tpot_s
    assert abs(seen.tpot_s.mean() / truth.tpot_s - 1) < 4 * error + 0.005
    assert abs(seen.output_tok_per_s / truth.output_tok_per_s - 1) < 4 * error + 0.005


def test_true_speedup_by_hand_without_cache_costs() -> None:
    # FAST, batch 1, K 1, full acceptance, 5 tokens: 4 steps of 1.02 ms against 2 of 1.04 + 0.1 ms.
    ours = true_speedup(
        FAST, batch=1, prompt_tokens=10, output_tokens=5, length=1, conditional=[1.0]
    )
    assert ours.speedup_tpot == pytest.approx(4 * 1.02 / (2 * 1.14))
    prompt_ms = 1 + 10 * 0.02
    assert ours.speedup_throughput == pytest.approx((prompt_ms + 4 * 1.02) / (prompt_ms + 2 * 1.14))


def test_speculation_stops_paying_as_the_batch_grows_at_short_context() -> None:
    def throughput(batch: int) -> float:
        return true_speedup(
            LLAMA_8B_H100,
            batch=batch,
            prompt_tokens=100,
            output_tokens=128,
            length=3,
            conditional=[0.5] * 3,
        ).speedup_throughput

    speedups = [throughput(batch) for batch in (1, 16, 64, 256)]
    assert speedups == sorted(speedups, reverse=True)
    assert speedups[0] > 1.3 and speedups[-1] < 1


def test_open_load_has_a_break_even_rate_between_win_and_loss() -> None:
    how = {"profile": "llama-8b-h100", "acceptance": 0.35, "method": "eagle"}
    base, spec = configuration(0, **how), configuration(3, **how)
    rate = break_even_rps(base, spec, SHAPE, low_rps=1, high_rps=80, requests=200, tolerance=0.1)
    assert rate is not None
    at = {"requests": 200}
    assert speedup_at_rate(base, spec, SHAPE, rate_rps=rate / 1.5, **at) > 1
    assert speedup_at_rate(base, spec, SHAPE, rate_rps=rate * 1.5, **at) < 1
    assert speedup_at_rate(base, spec, SHAPE, rate_rps=rate * 1.5, metric="speedup_e2e", **at) < 1
    never = break_even_rps(base, spec, SHAPE, low_rps=1, high_rps=2, requests=100)
    assert never is None


def test_the_knee_is_the_last_rung_that_keeps_up() -> None:
    # One slot, 1 + 9 steps of 1 ms a request: 100 requests a second at the very most.
    one_slot = configuration(engine={"max_num_seqs": 1}, target_token_s=0.0, target_fixed_s=0.001)
    shape = RequestShape(10, 10)
    rates = [10.0, 50.0, 90.0, 110.0, 200.0]
    assert knee_rps(one_slot, shape, rates_rps=rates, attainment=0.0, requests=600) == 90.0
    # Mean wait of M/D/1 at load 0.5 is 5 ms, at 0.9 it is 45 ms: 60 ms to the first token fails.
    assert knee_rps(one_slot, shape, rates_rps=rates, ttft_s=0.06, requests=600) == 50.0
    assert knee_rps(one_slot, shape, rates_rps=rates, ttft_s=0.0, requests=50) is None


def test_queueing_in_one_slot_follows_pollaczek_khinchine() -> None:
    one_slot = configuration(engine={"max_num_seqs": 1}, target_token_s=0.0, target_fixed_s=0.001)
    seen = run_open(one_slot, RequestShape(10, 10), rate_rps=50.0, requests=6_000)
    # M/D/1: wait = ρ·s / (2·(1 − ρ)) = 0.5 · 10 ms / 1 = 5 ms, then 1 ms for the prompt. Waits of
    # neighbours are alike, so 6,000 requests leave a standard error of about 3 %.
    assert float(np.mean(seen.ttft_s)) == pytest.approx(0.006, rel=0.1)
