"""From blocks to rungs, and a whole ladder of two queues whose knees are known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from orchestrator.analyse.growth import Timeline
from orchestrator.analyse.ladder import Rung, knee
from orchestrator.analyse.pairs import Pair, pair_of
from orchestrator.analyse.rung_figures import Blocks, positive_mean, proportion, rung_of
from orchestrator.analyse.saturation import Regime
from orchestrator.measure.slo import SloBounds
from orchestrator.plan.trial import LoadPoint, Trial
from orchestrator.records import ARMS, Arm, BlockRecord, ClientHealth, RequestRecord
from tests.analyse.queues import queue, records, request
from tests.run.fakes import trial

HEALTHY = ClientHealth(0.0, 0.0, 0.0, 0.0, 0.1)


def block(arm: Arm, index: int, requests: list[RequestRecord]) -> BlockRecord:
    return BlockRecord(
        trial_id="t",
        pair_index=index,
        arm=arm,
        position=ARMS.index(arm),
        kind="measured",
        started_unix_s=0.0,
        duration_s=max((r.end_s or 0.0) for r in requests),
        requests=tuple(requests),
        client=HEALTHY,
        counters_before=None,
        counters_after=None,
    )


def measured(
    arms: list[tuple[list[RequestRecord], list[RequestRecord]]], slo: SloBounds | None = None
) -> list[tuple[Pair, Blocks]]:
    made = []
    for i, (baseline, speculative) in enumerate(arms):
        blocks = (block("baseline", i, baseline), block("speculative", i, speculative))
        made.append((pair_of(*blocks, slo=slo), blocks))
    return made


def at(load: LoadPoint, pairs: tuple[int, int] = (2, 24)) -> Trial:
    base = trial(pairs=pairs)
    return replace(base, cell=replace(base.cell, load=load))


def paced(tpot_s: float, count: int = 40) -> list[RequestRecord]:
    """One request a second; first token after 0.1 s, the second and last `tpot_s` later."""
    return [request(i, float(i), i + 0.1, i + 0.1 + tpot_s) for i in range(count)]


def test_a_rung_of_steady_blocks() -> None:
    """Second tokens after 0.4 s and 0.2 s: the speedup is 2, every block says the same."""
    slo = SloBounds(tpot_s=0.3)
    rung = rung_of(
        at(LoadPoint("open", rate_rps=1.0)), measured([(paced(0.4), paced(0.2))] * 6, slo)
    )
    baseline, speculative = rung.arms["baseline"], rung.arms["speculative"]
    assert baseline.tpot_s is not None and baseline.tpot_s.value == pytest.approx(0.4)
    assert speculative.e2e_s is not None and speculative.e2e_s.value == pytest.approx(0.3)
    assert rung.speedups["speedup_tpot"].value == pytest.approx(2.0)
    assert baseline.attainment is not None and baseline.attainment.value == 0.0
    assert speculative.attainment is not None and speculative.attainment.value == 1.0
    assert speculative.attainment.low == pytest.approx(0.025 ** (1 / 240))
    assert baseline.achieved_over_offered == pytest.approx(1.0)
    assert baseline.saturation is not None and baseline.saturation.regime is Regime.STEADY


def test_closed_loops_show_queueing_past_the_cap() -> None:
    closed = [replace(r, offset_s=None) for r in paced(0.2)]
    rung = rung_of(
        at(LoadPoint("closed", concurrency=8)), measured([(closed, closed)] * 2), engine_cap=4
    )
    found = rung.arms["baseline"].saturation
    assert found is not None and found.regime is Regime.QUEUEING
    assert rung.arms["baseline"].achieved_over_offered is None
    assert rung.arms["baseline"].attainment is None


def test_before_the_first_look_there_is_no_speedup() -> None:
    few = measured([(paced(0.4), paced(0.2))] * 2)
    rung = rung_of(at(LoadPoint("open", rate_rps=1.0), pairs=(6, 24)), few)
    assert dict(rung.speedups) == {}


def test_a_rung_that_was_not_run_has_no_arms() -> None:
    rung = rung_of(at(LoadPoint("open", rate_rps=1.0)), [], skipped="not run: saturated below")
    assert (dict(rung.arms), rung.skipped) == ({}, "not run: saturated below")


def test_the_mean_of_a_positive_figure() -> None:
    """Logs of 1 and 4: mean log 2, s = 0.98, t(0.975; 1) = 12.7: +-8.8 on the log scale."""
    found = positive_mean([1.0, 4.0, None], 0.95)
    assert found is not None and found.value == pytest.approx(2.0)
    reach = 12.7062 * math.log(4) / math.sqrt(2) / math.sqrt(2)
    assert found.high == pytest.approx(2 * math.exp(reach), rel=1e-3)
    assert positive_mean([None], 0.95) is None
    alone = positive_mean([3.0], 0.95)
    assert alone is not None and (alone.low, alone.high) == (0.0, math.inf)


def test_a_proportion() -> None:
    """9 of 10: the textbook's 95 % interval is 0.555 to 0.997."""
    found = proportion(9, 10, 0.95)
    assert (found.value, round(found.low, 3), round(found.high, 3)) == (0.9, 0.555, 0.997)
    assert proportion(0, 10, 0.95).low == 0.0
    assert proportion(10, 10, 0.95).high == 1.0


def scaled(timeline: Timeline, factor: float) -> list[RequestRecord]:
    return records(
        Timeline(
            timeline.came_s * factor, timeline.first_token_s * factor, timeline.left_s * factor
        )
    )


@pytest.mark.slow
def test_the_knees_of_two_queues_are_found() -> None:
    """Constant service of 1 s (baseline) and 0.5 s (speculative): capacities of 1 and 2 rps.

    With first tokens due within 20 s, an arm keeps every rung below its capacity and loses the
    first above it: rungs at 0.5, 0.8 | 1.25, 1.6 | 2.5 rps.
    """
    slo = SloBounds(ttft_s=20.0)
    rungs: list[Rung] = []
    for rate in (0.5, 0.8, 1.25, 1.6, 2.5):
        pairs = []
        for seed in range(6):
            # The queue has a rate of 1: at `rate` everything happens that much faster.
            arms = [
                scaled(queue(seed, 300, rate * service_s, service="constant"), 1 / rate)
                for service_s in (1.0, 0.5)
            ]
            pairs.append((arms[0], arms[1]))
        rungs.append(rung_of(at(LoadPoint("open", rate_rps=rate)), measured(pairs, slo)))
    saturated = {arm: [r.offered for r in rungs if r.arms[arm].saturated] for arm in ARMS}
    assert saturated == {"baseline": [1.25, 1.6, 2.5], "speculative": [2.5]}
    assert knee(rungs, "baseline").load == 0.8
    assert knee(rungs, "speculative").load == 1.6
    assert rungs[0].speedups["speedup_tpot"].value == pytest.approx(2.0)
