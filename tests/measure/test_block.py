from __future__ import annotations

import pytest

from orchestrator.measure.block import block_figures
from orchestrator.measure.slo import SloBounds
from orchestrator.measure.summary import summarize, with_statistic
from orchestrator.records import RequestError
from tests.measure.records_by_hand import block, counters, request

FAST = request((1.0, 1.2), (1, 2), id="fast")  # ttft 1.0, tpot 0.1, e2e 1.2, 3 tokens
SLOW = request((2.0, 5.0), (1, 6), id="slow")  # ttft 2.0, tpot 0.5, e2e 5.0, 7 tokens
CUT = request((1.0, 1.1), (1, 1), id="cut", output_tokens=None, error=RequestError.RESET)
REFUSED = request((), None, id="refused", output_tokens=None, error=RequestError.HTTP_STATUS)


def test_a_block_worked_out_by_hand() -> None:
    seen = block_figures(block(FAST, SLOW, duration_s=5.0))
    assert seen.output_tokens == 10
    assert seen.input_tokens == 20
    assert seen.output_tok_per_s == pytest.approx(2.0)
    assert seen.mean_output_tokens == pytest.approx(5.0)
    assert seen.mean("ttft_s") == pytest.approx(1.5)
    assert seen.mean("tpot_s") == pytest.approx(0.3)
    assert seen.mean("e2e_s") == pytest.approx(3.1)
    # Gaps between tokens are pooled: 0.2, 0 | 3, 0, 0, 0, 0, 0.
    assert seen.mean("itl_s") == pytest.approx(3.2 / 8)
    assert seen.latencies["icl_s"].p50 == pytest.approx(1.6)


def test_failed_requests_are_counted_by_class_and_never_averaged() -> None:
    seen = block_figures(block(FAST, CUT, REFUSED, duration_s=3.0))
    assert (seen.requests_planned, seen.requests_completed) == (3, 1)
    assert seen.failures == {"reset": 1, "http_status": 1}
    assert seen.mean("ttft_s") == pytest.approx(1.0)
    assert seen.output_tok_per_s == pytest.approx(1.0)
    metrics = seen.as_metrics()
    assert metrics["requests_failed"] == 2
    assert metrics["requests_failed_reset"] == 1


def test_when_nothing_completed_the_figures_are_undefined_and_not_zero() -> None:
    metrics = block_figures(block(CUT, REFUSED)).as_metrics()
    assert metrics["requests_completed"] == 0
    assert not {"output_tok_per_s", "ttft_mean_s", "tpot_mean_s", "output_tokens"} & set(metrics)


def test_throughput_is_undefined_where_the_server_hides_a_count() -> None:
    silent = request((1.0, 2.0), None, output_tokens=None)
    assert block_figures(block(FAST, silent)).output_tok_per_s is None


def test_latencies_may_be_restricted_but_throughput_is_of_the_whole_block() -> None:
    seen = block_figures(block(FAST, SLOW), latencies_of={("fast", 0)})
    assert seen.mean("e2e_s") == pytest.approx(1.2)
    assert seen.mean_output_tokens == pytest.approx(3.0)
    assert seen.output_tokens == 10


def test_names_carry_the_unit_last() -> None:
    metrics = block_figures(
        block(FAST, samples=({"gpu_power_w": 100.0}, {"gpu_power_w": 300.0}))
    ).as_metrics()
    assert metrics["gpu_power_mean_w"] == pytest.approx(200.0)
    assert metrics["gpu_power_max_w"] == pytest.approx(300.0)
    assert metrics["tpot_p95_s"] == pytest.approx(0.1)
    assert with_statistic("host_cpu_fraction", "max") == "host_cpu_fraction_max"


def test_acceptance_preemptions_and_cache_hits_come_from_counter_differences() -> None:
    seen = block_figures(
        block(
            FAST,
            arm="speculative",
            before=counters(
                drafts=0,
                draft_tokens=0,
                accepted_tokens=0,
                accepted_per_position=(0.0, 0.0),
                preemptions=1,
                prefix_cache_queries=100,
                prefix_cache_hits=10,
            ),
            after=counters(
                drafts=10,
                draft_tokens=20,
                accepted_tokens=12,
                accepted_per_position=(8.0, 4.0),
                preemptions=4,
                prefix_cache_queries=300,
                prefix_cache_hits=60,
            ),
        )
    ).as_metrics()
    assert seen["acceptance_rate"] == pytest.approx(0.6)
    assert seen["acceptance_length"] == pytest.approx(2.2)
    assert seen["per_position_acceptance_rate_1"] == pytest.approx(0.4)
    assert seen["conditional_acceptance_rate_1"] == pytest.approx(0.5)
    assert seen["preemptions"] == 3
    assert seen["prefix_cache_hit_rate"] == pytest.approx(0.25)


def test_a_baseline_has_no_acceptance_even_if_its_server_counts_zero_drafts() -> None:
    zero = counters(drafts=0, draft_tokens=0, accepted_tokens=0)
    assert block_figures(block(FAST, before=zero, after=zero)).acceptance is None


def test_attainment_counts_failed_requests_against() -> None:
    bounds = SloBounds(ttft_s=1.5, tpot_s=0.2)
    seen = block_figures(block(FAST, SLOW, CUT, REFUSED, duration_s=2.0), bounds)
    assert seen.slo_attainment == pytest.approx(1 / 4)
    assert seen.goodput_rps == pytest.approx(1 / 2)


def test_without_bounds_there_is_no_attainment() -> None:
    seen = block_figures(block(FAST))
    assert seen.slo_attainment is None
    assert seen.goodput_rps is None


def test_a_first_token_bound_runs_from_the_planned_time() -> None:
    late = request((2.0, 2.1), (1, 1), offset_s=0.0, sent_s=1.5)
    assert block_figures(block(late), SloBounds(ttft_s=1.0)).slo_attainment == 0.0


def test_a_single_token_cannot_break_a_bound_on_time_per_token() -> None:
    single = request((0.5,), (1,))
    assert block_figures(block(single), SloBounds(tpot_s=0.01)).slo_attainment == 1.0


def test_a_summary_of_nothing_is_undefined_and_of_nan_refused() -> None:
    assert summarize([]) is None
    with pytest.raises(ValueError, match="finite"):
        summarize([1.0, float("nan")])
