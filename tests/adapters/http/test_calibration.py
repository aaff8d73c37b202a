"""The client's own error: worked by hand, and measured once for real."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.adapters.http.calibration import (
    Calibration,
    StreamErrors,
    calibrate,
    output_tok_per_s,
    render,
    request_errors,
    stream_errors,
)
from orchestrator.ports import BlockObservation
from orchestrator.records import ClientHealth, RequestError, RequestRecord

# The server received at 100.0 s on its clock, and sent at 100.5, 100.6 and 100.7.
TEXT = "100000000000:100500000000 100600000000 100700000000 "
GOOD = RequestRecord(
    request_id="r", prompt_id="p", category="c", turn=0, offset_s=1.0, sent_s=1.004,
    chunk_s=(1.506, 1.606, 1.707), chunk_tokens=(1, 1, 1), end_s=1.707, input_tokens=7,
    output_tokens=3, max_tokens=3, finish_reason="length", text=TEXT,
    tokens_from="usage_continuous", http_status=200,
)  # fmt: skip
HEALTH = ClientHealth(0.004, 0.004, 0.002, 0.003, 0.25)
STEP = StreamErrors(64, 90, 0, 0.0002, 0.0009, 1e-6, 5e-6, 0.0001, 0.0002, 0.001, 0.2)
MEASURED = Calibration(2, "3.11.7", (STEP,), 120_000.0, 0.95, 320.0, 50.0)


def test_the_error_is_the_claim_minus_the_stamps() -> None:
    errors = request_errors(GOOD)
    assert errors is not None
    # Claimed TTFT 502 ms, true 500 ms. Claimed TPOT 201/2 ms, true 200/2 ms.
    assert errors[0] == pytest.approx(0.002)
    assert errors[1] == pytest.approx(0.0005)


def test_a_failed_request_has_no_error_and_one_token_no_tpot() -> None:
    assert request_errors(replace(GOOD, error=RequestError.RESET)) is None
    single = replace(GOOD, text="100000000000:100500000000 ", chunk_s=(1.506,), output_tokens=1)
    errors = request_errors(single)
    assert errors is not None and errors[1] is None


def test_a_step_is_summed_up_over_its_requests() -> None:
    late = replace(GOOD, sent_s=1.010, chunk_s=(1.520, 1.620, 1.720))  # TTFT error 10 ms
    failed = replace(GOOD, error=RequestError.RESET)
    seen = BlockObservation(0.0, 2.0, (GOOD, late, failed), HEALTH)
    step = stream_errors(16, seen)
    assert (step.streams, step.requests, step.failed) == (16, 3, 1)
    assert step.ttft_error_p50_s == pytest.approx(0.002)
    assert step.ttft_error_p99_s == pytest.approx(0.010)
    assert step.send_lag_p99_s == pytest.approx(0.010)
    assert (step.loop_lag_p99_s, step.cpu_fraction) == (0.002, 0.25)
    assert output_tok_per_s(seen) == 3.0  # 6 tokens of completed requests in 2 s


def test_nothing_completed_is_undefined() -> None:
    seen = BlockObservation(0.0, 2.0, (replace(GOOD, error=RequestError.RESET),), HEALTH)
    assert output_tok_per_s(seen) is None
    assert stream_errors(1, seen).ttft_error_p99_s is None


def test_the_table_says_what_was_measured_and_whether_it_is_good_enough() -> None:
    text = render(MEASURED)
    assert "0.20 / 0.90" in text
    assert "120,000 tokens/s at full load, with 95% of a core; about 320 streams" in text
    assert "p99 within 1 ms at every step" in text


def test_the_table_warns_of_errors_and_of_a_capacity_that_is_only_a_bound() -> None:
    late = replace(STEP, ttft_error_p99_s=0.004)
    text = render(replace(MEASURED, errors=(STEP, late), full_load_cpu_fraction=0.4))
    assert "lower bound" in text
    assert "p99 over 1 ms at 64 streams" in text
    unknown = render(replace(MEASURED, capacity_tok_per_s=None, capacity_streams=None))
    assert "not measured" in unknown


@pytest.mark.slow
def test_a_real_calibration_is_complete() -> None:
    told: list[str] = []
    calibration = calibrate(2.0, told.append)
    assert [step.streams for step in calibration.errors] == [1, 16, 64]
    assert len(told) == 4
    for step in calibration.errors:
        assert step.failed == 0
        assert step.ttft_error_p50_s is not None and step.tpot_error_p99_s is not None
        assert step.send_lag_p99_s is not None
    assert calibration.capacity_tok_per_s is not None and calibration.capacity_tok_per_s > 0
    assert calibration.full_load_cpu_fraction is not None
