"""The guard on simulated traffic with faults planted at known times."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrator.adapters.simulated.guarded import guarded
from orchestrator.adapters.simulated.live_traffic import (
    LiveTraffic,
    PlantedFault,
    TrafficShape,
)
from orchestrator.switch.guard import GuardSettings, LiveGuard
from orchestrator.switch.guarding import GuardView
from orchestrator.switch.observation import Observation

SETTINGS = GuardSettings.model_validate(
    {
        "acceptance": {"floor": 0.35, "floors": {"fiction": 0.2}},
        "slo": {"ttft_p99_s": 0.75, "tpot_p95_s": 0.06},
    }
)
BEGINS_S = 1500.0
Change = tuple[float, GuardView]


def run(
    *faults: PlantedFault,
    minutes: float = 30,
    seed: int = 1,
    guard: LiveGuard | None = None,
    **shape: Any,
) -> list[Change]:
    traffic_shape = TrafficShape(swing=0.0, faults=faults, **shape)
    traffic = LiveTraffic(traffic_shape, np.random.default_rng(seed))
    guard = guard or LiveGuard(SETTINGS, shows_figures=False)
    return list(guarded(guard, traffic, traffic_shape, 0.0, 60 * minutes))


def first_breach(changes: list[Change]) -> Change:
    return next(change for change in changes if change[1].reasons)


@pytest.mark.parametrize(
    ("fault", "rules", "within_s"),
    [
        (PlantedFault("acceptance", BEGINS_S, 0.5), {"acceptance_drop"}, 60),
        (PlantedFault("errors", BEGINS_S, 0.3), {"errors"}, 30),
        (PlantedFault("ttft", BEGINS_S, 4.0), {"ttft_p99_s", "slower_ttft"}, 150),
        (PlantedFault("tpot", BEGINS_S, 3.0), {"tpot_p95_s", "slower_tpot", "slower_e2e"}, 150),
        (PlantedFault("repetition", BEGINS_S, 0.4), {"repetition"}, 60),
    ],
)  # fmt: skip
def test_a_planted_breach_is_found_and_named(
    fault: PlantedFault, rules: set[str], within_s: float
) -> None:
    at_s, view = first_breach(run(fault))
    assert BEGINS_S < at_s <= BEGINS_S + within_s
    assert {breach.rule for breach in view.reasons} <= rules
    assert not view.speculative_allowed and view.state == "breached"
    evidence = view.reasons[0].evidence
    assert evidence is not None and evidence["began_s"] is not None
    assert float(evidence["began_s"]) == pytest.approx(BEGINS_S, abs=60)


def test_unequal_greedy_answers_are_found_in_mirrored_traffic() -> None:
    fault = PlantedFault("mismatch", BEGINS_S, 0.9)
    at_s, view = first_breach(run(fault, shadow_share=0.5))
    assert BEGINS_S < at_s <= BEGINS_S + 150
    assert [breach.rule for breach in view.reasons] == ["mismatch"]


@pytest.mark.parametrize("kind", ["ttft", "tpot"])
def test_what_hits_both_arms_alike_is_no_fault_of_speculation(kind: Any) -> None:
    assert run(PlantedFault(kind, BEGINS_S, 3.0, both_arms=True))[1:] == []


def test_an_outage_of_both_arms_is_no_fault_of_speculation() -> None:
    outage = PlantedFault("errors", BEGINS_S, 0.6, BEGINS_S + 120, both_arms=True)
    assert run(outage)[1:] == []


def test_with_little_traffic_a_probe_takes_as_long_as_it_takes() -> None:
    fault = PlantedFault("errors", BEGINS_S, 0.9, BEGINS_S + 1200)
    changes = run(fault, minutes=14 * 60, rate_rps=0.03)
    assert [view.state for _, view in changes[-2:]] == ["probing", "healthy"]
    assert changes[-1][0] - changes[-2][0] > SETTINGS.probe.max_s


def test_one_category_goes_alone_and_the_others_stay() -> None:
    changes = run(PlantedFault("acceptance", BEGINS_S, 0.3, category="code"), minutes=35)
    _, view = first_breach(changes)
    assert view.state == "healthy" and view.speculative_allowed
    assert view.blocked_categories == {"code": 0.0}
    assert {b.category for b in view.reasons} == {"code"}
    assert any(view.blocked_categories.get("code", 0.0) > 0 for _, view in changes)
    assert all(view.speculative_allowed for _, view in changes)


def test_it_comes_back_after_a_cool_down_and_a_probe_and_stays() -> None:
    fault = PlantedFault("acceptance", BEGINS_S, 0.5, BEGINS_S + 120)
    changes = run(fault, minutes=75)
    states = [view.state for _, view in changes]
    assert states == ["healthy", "breached", "cooling", "probing", "healthy"]
    breached, probing, back = changes[1][0], changes[3][0], changes[4][0]
    assert probing - breached == pytest.approx(300, abs=10)
    assert back - probing >= 60
    assert changes[3][1].probe_share == SETTINGS.probe.share
    assert not changes[3][1].speculative_allowed


def test_while_the_fault_lasts_probes_fail_and_wait_longer_each_time() -> None:
    changes = run(PlantedFault("acceptance", BEGINS_S, 0.5), minutes=120)
    assert not any(view.speculative_allowed for at_s, view in changes if at_s > BEGINS_S + 60)
    probes = [at_s for at_s, view in changes if view.state == "probing"]
    gaps = np.diff(probes)
    assert len(gaps) >= 2 and np.all(gaps[1:] > 1.4 * gaps[:-1])


def test_an_arm_without_traffic_gives_no_verdict() -> None:
    guard = LiveGuard(SETTINGS)
    for step in range(1500):
        guard.observe(Observation(step * 5.0, "baseline", ttft_s=9.0, e2e_s=99.0))
        view = guard.evaluate(step * 5.0)
    assert view.state == "healthy" and view.reasons == ()
    assert {f.arm for f in view.figures} == {"baseline"}


def test_readings_of_counters_are_enough_for_acceptance_and_are_no_requests() -> None:
    guard = LiveGuard(SETTINGS)
    now_s = 0.0
    for step in range(600):
        now_s = step * 2.0
        accepted = 60 if step < 400 else 30
        accepted += step % 7
        guard.observe(
            Observation(now_s, "speculative", drafts=25, draft_tokens=100, accepted_tokens=accepted)
        )
        view = guard.evaluate(now_s)
        if not view.speculative_allowed:
            break
    assert 800 < now_s < 900
    assert all(f.name != "error_rate" for f in view.figures)


def test_latencies_are_not_compared_while_one_arm_carries_far_more() -> None:
    def pairs(per_baseline: int) -> GuardView:
        guard = LiveGuard(GuardSettings())
        for step in range(3000):
            arm = "baseline" if step % (per_baseline + 1) == 0 else "speculative"
            slow = 3.0 if arm == "speculative" else 1.0
            guard.observe(Observation(float(step), arm, ttft_s=slow, e2e_s=slow))
            view = guard.evaluate(float(step))
            if not view.speculative_allowed:
                break
        return view

    assert not pairs(1).speculative_allowed
    assert pairs(9).speculative_allowed


def test_the_same_traffic_gives_the_same_verdicts() -> None:
    fault = PlantedFault("errors", BEGINS_S, 0.3)
    assert run(fault, seed=5) == run(fault, seed=5)


def test_a_restart_goes_on_where_it_was_and_knows_what_was_usual() -> None:
    guard = LiveGuard(SETTINGS, shows_figures=False)
    run(PlantedFault("acceptance", BEGINS_S, 0.5), minutes=28, guard=guard)
    again = LiveGuard(SETTINGS, shows_figures=False)
    again.restore(json.loads(json.dumps(guard.snapshot())))
    before, after = guard.evaluate(28 * 60 + 1.0), again.evaluate(28 * 60 + 1.0)
    assert (after.state, after.reasons, after.probe_at_s) == (
        before.state,
        before.reasons,
        before.probe_at_s,
    )
    assert not after.speculative_allowed
    assert again.snapshot()["usual"] == guard.snapshot()["usual"]


@pytest.mark.parametrize("spoil", [
    lambda kept: kept | {"version": 0},
    lambda kept: {"version": 1},
    lambda kept: kept | {"whole": kept["whole"] | {"state": "?"}},
])  # fmt: skip
def test_what_is_no_snapshot_is_refused(spoil: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    guard = LiveGuard(SETTINGS)
    before = guard.snapshot()
    with pytest.raises((KeyError, ValueError)):
        guard.restore(spoil(dict(before)))
    assert guard.snapshot() == before


def test_a_clock_that_is_set_back_harms_nothing() -> None:
    guard = LiveGuard(SETTINGS)
    for now_s in (1000.0, 1010.0, 20.0, 30.0):
        guard.observe(Observation(now_s, "speculative", ttft_s=0.1, e2e_s=1.0))
        assert guard.evaluate(now_s).state == "healthy"


def test_memory_is_bounded_whatever_categories_come() -> None:
    guard = LiveGuard(SETTINGS)
    for step in range(3000):
        arm = "speculative" if step % 2 else "baseline"
        guard.observe(
            Observation(
                step * 0.5, arm, category=f"c{step // 4}", ttft_s=0.1, e2e_s=1.0,
                draft_tokens=100, drafts=25, accepted_tokens=60,
            )
        )  # fmt: skip
        guard.evaluate(step * 0.5)
    assert len(guard._watch.checks) < 50
    assert len(json.dumps(guard.snapshot())) < 20_000


def test_figures_have_intervals_limits_and_the_way_to_an_alarm() -> None:
    traffic = LiveTraffic(TrafficShape(swing=0.0, slow_spells_per_day=0), np.random.default_rng(2))
    guard = LiveGuard(SETTINGS)
    guard.evaluate(0.0)
    for seen in traffic.between(0.0, 600.0):
        guard.observe(seen)
    figures = {(f.name, f.arm, f.category): f for f in guard.evaluate(600.0).figures}
    tpot = figures["tpot_p50_s", "speculative", None]
    assert tpot.low is not None and tpot.high is not None and tpot.value is not None
    assert tpot.low < tpot.value < tpot.high
    assert figures["tpot_p95_s", "speculative", None].limit == 0.06
    assert figures["tpot_p95_s", "baseline", None].limit is None
    fiction = figures["acceptance_rate", "speculative", "fiction"]
    assert fiction.limit == 0.2
    assert figures["acceptance_rate", "speculative", None].limit == 0.35
    near = figures["evidence_acceptance_floor", None, None]
    assert near.value is not None and 0 <= near.value < 0.5 and near.limit == 1.0
