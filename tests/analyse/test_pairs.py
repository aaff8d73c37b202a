from __future__ import annotations

import math
from dataclasses import replace

import pytest

from orchestrator.analyse.pairs import SPEEDUPS, pair_of, ratio_series
from orchestrator.records import InvalidReason, RequestError, RequestRecord
from tests.measure.records_by_hand import HEALTHY, block, request


def answers(
    seconds_per_token: float, *, tokens: int = 11, ids: str = "ab", first_s: float = 1.0
) -> tuple[RequestRecord, ...]:
    times = tuple(first_s + i * seconds_per_token for i in range(tokens))
    return tuple(request(times, (1,) * tokens, id=i) for i in ids)


def broken(id: str) -> RequestRecord:
    return request((), None, id=id, output_tokens=None, error=RequestError.RESET)


def test_speedups_worked_out_by_hand() -> None:
    # Baseline: 11 tokens, 0.2 s each after the first at 1 s: e2e 3 s. Speculative: 0.1 s: e2e 2 s.
    pair = pair_of(
        block(*answers(0.2), duration_s=3.0),
        block(*answers(0.1), duration_s=2.0, arm="speculative", position=1),
    )
    assert pair.valid
    assert pair.baseline_first
    speedups = {name: math.exp(x) for name, x in pair.log_ratios.items()}
    assert speedups == pytest.approx(
        {
            "speedup_throughput": 1.5,
            "speedup_tpot": 2.0,
            "speedup_e2e": 1.5,
            "speedup_ttft": 1.0,
        }
    )


def test_swapping_the_arms_inverts_every_ratio() -> None:
    one = pair_of(block(*answers(0.2)), block(*answers(0.1), arm="speculative"))
    other = pair_of(block(*answers(0.1)), block(*answers(0.2), arm="speculative"))
    for name in SPEEDUPS:
        assert one.log_ratios[name] == pytest.approx(-other.log_ratios[name])


def test_an_arm_gains_nothing_by_failing_its_slow_requests() -> None:
    # Both arms are equally fast, and "s" is slow; the speculative arm loses it.
    slow = request((5.0, 25.0), (1, 10), id="s")
    pair = pair_of(
        block(*answers(0.1), slow),
        block(*answers(0.1), broken("s"), arm="speculative"),
    )
    assert pair.valid
    assert pair.common_requests == 2
    assert pair.log_ratios["speedup_tpot"] == pytest.approx(0.0)
    assert pair.log_ratios["speedup_e2e"] == pytest.approx(0.0)
    # ... and its throughput pays: 22 of 33 tokens in the same time.
    assert math.exp(pair.log_ratios["speedup_throughput"]) == pytest.approx(22 / 33)


def test_a_pair_of_survivors_does_not_count() -> None:
    pair = pair_of(
        block(*answers(0.1, ids="abc")),
        block(*answers(0.1, ids="a"), broken("b"), broken("c"), arm="speculative"),
    )
    assert not pair.valid
    assert pair.why_invalid() == ("1 of 3 requests completed in both arms; at least 50% must",)


def test_answers_of_different_length_have_no_end_to_end_speedup() -> None:
    pair = pair_of(
        block(*answers(0.1, tokens=20)), block(*answers(0.1, tokens=10), arm="speculative")
    )
    assert pair.output_length_ratio == pytest.approx(0.5)
    assert "speedup_e2e" not in pair.log_ratios
    assert pair.log_ratios["speedup_tpot"] == pytest.approx(0.0)


def test_lengths_within_a_tenth_are_the_same_work() -> None:
    pair = pair_of(
        block(*answers(0.1, tokens=20)), block(*answers(0.1, tokens=19), arm="speculative")
    )
    assert "speedup_e2e" in pair.log_ratios


def test_a_ratio_with_an_undefined_side_is_absent() -> None:
    single = request((1.0,), (1,), id="a")
    pair = pair_of(block(single), block(single, arm="speculative"))
    assert "speedup_tpot" not in pair.log_ratios
    assert "speedup_ttft" in pair.log_ratios


def test_one_invalid_block_spoils_its_pair_and_says_which() -> None:
    tired = block(*answers(0.1), arm="speculative", client=replace(HEALTHY, cpu_fraction=0.9))
    pair = pair_of(block(*answers(0.1)), tired)
    assert not pair.valid
    assert [f.reason for f in pair.findings["speculative"]] == [InvalidReason.CLIENT_CPU]
    assert pair.why_invalid()[0].startswith("speculative block: client_cpu: the client used 0.90")


def test_blocks_of_different_pairs_are_no_pair() -> None:
    with pytest.raises(ValueError, match="baseline 0, speculative 1"):
        pair_of(block(*answers(0.1)), block(*answers(0.1), arm="speculative", pair_index=1))
    with pytest.raises(ValueError, match="baseline 0, baseline 0"):
        pair_of(block(*answers(0.1)), block(*answers(0.1)))


def test_a_series_holds_the_pairs_that_count_in_order() -> None:
    pairs = [
        pair_of(
            block(*answers(0.2), pair_index=i, position=i % 2),
            block(*answers(0.1), arm="speculative", pair_index=i, position=1 - i % 2),
        )
        for i in (2, 0, 1)
    ]
    spoilt = pair_of(
        block(*answers(0.2), pair_index=3, client=replace(HEALTHY, cpu_fraction=0.9)),
        block(*answers(0.1), arm="speculative", pair_index=3),
    )
    series = ratio_series([*pairs, spoilt], "speedup_tpot")
    assert series.pair_indices == (0, 1, 2)
    assert series.baseline_first == (True, False, True)
    assert series.log_ratios == pytest.approx((math.log(2),) * 3)
    assert series.left_out == 1


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        ratio_series([], "tpot_s")
