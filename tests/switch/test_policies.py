"""Which arm, in arithmetic: shares, ramps, gates, limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.switch.gates import ArmGate, load_is_off
from orchestrator.switch.guarding import GuardView
from orchestrator.switch.limits import Allowance, Bucket
from orchestrator.switch.policy import Chosen, LoadLimit, Policy, Ramp, Shadow
from orchestrator.switch.ramp import RampState, advance
from orchestrator.switch.routing import Asker, Standing, may_mirror, route
from orchestrator.switch.sticky import place
from orchestrator.switch.verdict import Seen, Verdict, conclude, verdict_as_plain, verdict_from

SHARES = st.floats(0, 1)
NAMES = st.text(min_size=1, max_size=20)
FIXED = Policy(mode="fixed", share=0.5)


@given(NAMES, SHARES, SHARES)
def test_who_is_on_an_arm_stays_there_as_the_share_grows(name: str, a: float, b: float) -> None:
    low, high = sorted((a, b))
    asker = Asker("r", sticky=name)
    if route(asker, FIXED, Standing(low)).arm == "speculative":
        assert route(asker, FIXED, Standing(high)).arm == "speculative"
    other = Asker("another request", sticky=name)
    assert route(asker, FIXED, Standing(a)).arm == route(other, FIXED, Standing(a)).arm


@pytest.mark.parametrize("share", [0.01, 0.05, 0.25, 0.5])
def test_the_share_is_kept_over_many_users(share: float) -> None:
    """10,000 users: the standard deviation is below 0.005; five of them."""
    on = sum(place(f"user-{n}", salt="share") < share for n in range(10_000))
    assert on / 10_000 == pytest.approx(share, abs=5 * (share * (1 - share) / 10_000) ** 0.5)


def test_nobody_at_nothing_and_everybody_at_one() -> None:
    for n in range(1000):
        asker = Asker(str(n))
        assert route(asker, FIXED, Standing(0.0)).arm == "baseline"
        assert route(asker, FIXED, Standing(1.0)).arm == "speculative"


@given(SHARES, st.booleans(), st.booleans(), NAMES)
def test_nobody_is_sent_to_an_arm_that_is_down_while_the_other_lives(
    share: float, baseline: bool, speculative: bool, name: str
) -> None:
    got = route(
        Asker(name), FIXED, Standing(share, baseline_up=baseline, speculative_up=speculative)
    )
    if baseline != speculative:
        assert got.arm == ("baseline" if baseline else "speculative")
        assert not got.mirror


def test_only_who_is_chosen_is_sent() -> None:
    only = Chosen(categories=("code",), not_tenants=("bank",))
    policy = Policy(mode="fixed", share=1.0, only=only)
    for category, tenant, arm in [
        ("code", "shop", "speculative"),
        ("code", None, "speculative"),
        ("code", "bank", "baseline"),
        ("chat", "shop", "baseline"),
        (None, "shop", "baseline"),
    ]:
        asker = Asker("r", tenant=tenant, category=category)
        assert route(asker, policy, Standing(1.0)).arm == arm


def test_mirrors_are_the_first_to_go_under_load() -> None:
    policy = Policy(mode="shadow", shadow=Shadow(share=1.0, max_in_flight=2, max_load=4))
    for callers, mirrored, mirror in [(1, 0, True), (4, 1, True), (5, 0, False), (1, 2, False)]:
        now = Standing(0.0, callers_in_flight=callers, mirrored_in_flight=mirrored)
        got = route(Asker("r"), policy, now)
        assert (got.arm, got.mirror) == ("baseline", mirror)
    assert not route(Asker("r"), policy, Standing(0.0, mirror=False)).mirror
    assert may_mirror(Policy(), 8, 0) and not may_mirror(Policy(), 9, 0)


@given(st.lists(st.tuples(st.floats(0, 60), st.booleans()), max_size=60))
def test_a_ramp_climbs_only_through_healthy_time(looks: list[tuple[float, bool]]) -> None:
    policy = Policy(mode="ramp", ramp=Ramp(steps=(0.01, 0.05, 0.25, 0.5, 1.0), hold_s=50.0))
    state, now_s, healthy_s = RampState(), 0.0, 0.0
    for gap_s, healthy in looks:
        now_s += gap_s
        before, state = state, advance(state, policy, healthy=healthy, now_s=now_s)
        healthy_s = healthy_s + gap_s if healthy else 0.0
        assert state.step <= before.step + 1
        assert state.step * 50.0 <= healthy_s + 1e-6
        if not healthy:
            assert state.share(policy) == 0.01


def test_a_ramp_walks_all_its_steps_and_stays_on_the_last() -> None:
    policy = Policy(mode="ramp", ramp=Ramp(hold_s=10.0))
    state, seen = RampState(), []
    for second in range(100):
        state = advance(state, policy, healthy=True, now_s=float(second))
        seen.append(state.share(policy))
    assert seen[9] == 0.01 and seen[10] == 0.05
    assert sorted(set(seen)) == [0.01, 0.05, 0.25, 0.5, 1.0]
    assert seen == sorted(seen) and seen[-1] == 1.0


def test_time_that_nobody_watched_does_not_count() -> None:
    policy = Policy(mode="ramp", ramp=Ramp(hold_s=600.0))
    state = advance(RampState(looked_s=0.0), policy, healthy=True, now_s=86_400.0)
    assert (state.step, state.held_s) == (0, 30.0)


@given(st.lists(st.one_of(st.none(), st.floats(0, 30)), max_size=50))
def test_the_load_gate_turns_only_at_its_two_ends(loads: list[float | None]) -> None:
    limit = LoadLimit(off_above=16.0, on_below=12.0)
    off = False
    for load in loads:
        was, off = off, load_is_off(off, limit, load)
        if off and not was:
            assert load is not None and load > 16
        if was and not off:
            assert load is not None and load < 12
    assert not load_is_off(True, None, 99.0)


def test_an_arm_that_falls_again_and_again_waits_longer_each_time() -> None:
    gate, now_s, waits = ArmGate(), 0.0, []
    for _ in range(4):
        gate = gate.seen(False, now_s)
        assert gate.closed(now_s + 1e6, 30.0), "down is down"
        gate = gate.seen(True, now_s + 1)
        waits.append(gate.wait_s(30.0))
        assert gate.closed(now_s + 1 + 29.9, 30.0)
        assert not gate.closed(now_s + 1 + waits[-1], 30.0)
        now_s += 300
    assert waits == [30.0, 60.0, 120.0, 240.0]
    assert gate.seen(False, now_s + 4000).falls == 1, "an hour of calm is forgiveness"
    assert not ArmGate().seen(True, 5.0).closed(5.0, 30.0)


def seen(**changes: Any) -> Seen:
    return Seen(
        **{
            "settings": 1,
            "policy_version": 1,
            "policy": FIXED,
            "paused": False,
            "guard": GuardView("healthy", True),
            "guard_snapshot": {},
            "baseline_up": True,
            "speculative_up": True,
            "load": None,
            "return_after_s": 30.0,
            "now_s": 100.0,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("changes", "closed_by"),
    [
        ({}, ()),
        ({"paused": True}, ("paused",)),
        ({"guard": GuardView("breached", False)}, ("guard",)),
        ({"speculative_up": False}, ("arm",)),
        (
            {
                "policy": Policy(
                    mode="fixed", share=0.5, load=LoadLimit(off_above=4.0, on_below=2.0)
                ),
                "load": 5.0,
            },
            ("load",),
        ),
    ],
)
def test_what_holds_the_share_at_nothing(changes: dict[str, Any], closed_by: tuple[str]) -> None:
    verdict = conclude(Verdict(), seen(**changes))
    assert verdict.closed_by == closed_by
    assert verdict.share == (0.0 if closed_by else 0.5)
    assert verdict_from(verdict_as_plain(verdict)) == verdict


def test_a_probe_mirrors_while_callers_are_kept_away() -> None:
    probing = GuardView("probing", False, probe_share=0.1)
    verdict = conclude(Verdict(), seen(guard=probing))
    assert (verdict.share, verdict.probe_share) == (0.0, 0.1)
    assert conclude(Verdict(), seen(guard=probing, paused=True)).probe_share == 0.0
    assert conclude(Verdict(), seen(guard=probing, policy=Policy())).probe_share == 0.0


def test_a_pause_keeps_the_ramp_and_a_new_policy_begins_it_anew() -> None:
    policy = Policy(mode="ramp", ramp=Ramp(hold_s=10.0))
    at = Verdict(settings=1, policy=1, ramp=RampState(3, 5.0, 90.0))
    paused = conclude(at, seen(policy=policy, paused=True, settings=2))
    assert (paused.ramp.step, paused.ramp.held_s) == (3, 5.0)
    assert conclude(paused, seen(policy=policy, settings=3, now_s=101.0)).ramp.step == 3
    assert conclude(at, seen(policy=policy, settings=4, policy_version=4)).ramp.step == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "fixed"},
        {"mode": "off", "share": 0.5},
        {"mode": "off", "ramp": {}},
        {"mode": "shadow"},
        {"mode": "off", "shadow": {"share": 0.1}},
        {"mode": "ramp", "ramp": {"steps": [0.5, 0.1]}},
        {"mode": "fixed", "share": 1.0, "load": {"off_above": 4.0, "on_below": 4.0}},
        {"mode": "fixed", "share": 1.0, "colour": "red"},
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate(wrong)


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 50)), min_size=1, max_size=80))
def test_a_bucket_never_gives_more_than_it_got(asks: list[tuple[float, float]]) -> None:
    """Over any time from the start: at most a minute's worth and what flowed in since."""
    bucket, now_s, taken = Bucket(60.0), 0.0, 0.0
    for gap_s, amount in asks:
        now_s += gap_s
        if bucket.wait_s(amount, now_s) == 0:
            bucket.take(amount, now_s)
            taken += amount
        assert taken <= 60.0 + now_s + 1e-6


def test_an_allowance_refuses_with_the_time_to_come_again() -> None:
    allowance = Allowance(requests_per_minute=2.0, tokens_per_minute=100.0, concurrency=2)
    assert allowance.begin(10, 0.0) is None and allowance.begin(10, 0.0) is None
    refusal = allowance.begin(10, 0.0)
    assert refusal is not None and refusal.limit == "concurrency"
    allowance.end(10, 90.0, 0.0)
    allowance.end(10, None, 0.0)
    refusal = allowance.begin(10, 0.0)
    assert refusal is not None and (refusal.limit, refusal.retry_after_s) == ("requests", 30.0)
    refusal = allowance.begin(20, 30.0)
    assert refusal is None, "by then 50 tokens have flown in, and nothing was left"
    allowance.end(20, 20.0, 30.0)
    assert (
        Allowance(requests_per_minute=None, tokens_per_minute=None, concurrency=None).begin(
            1e9, 0.0
        )
        is None
    )


def test_a_blocked_category_gets_the_baseline_and_the_others_do_not() -> None:
    guard = GuardView("healthy", True, blocked_categories={"code": 0.2})
    verdict = conclude(Verdict(), seen(guard=guard))
    assert (verdict.share, verdict.blocked) == (0.5, {"code": 0.2})
    assert verdict_from(verdict_as_plain(verdict)) == verdict
    now = Standing(1.0, blocked=verdict.blocked)
    assert route(Asker("r", category="chat"), FIXED, now).arm == "speculative"
    blocked = [route(Asker(str(n), category="code"), FIXED, now) for n in range(500)]
    assert {one.arm for one in blocked} == {"baseline"}
    assert sum(one.mirror for one in blocked) / 500 == pytest.approx(0.2, abs=0.09)
