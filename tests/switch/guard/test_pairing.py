from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.switch.guard.pairing import LONGEST_APART_S, WAITING_MAX, Pairing, ratios
from orchestrator.switch.observation import ArmName, Observation


def seen(at_s: float, arm: ArmName, category: str | None = None, ttft_s: float = 1) -> Observation:
    return Observation(at_s, arm, category=category, ttft_s=ttft_s)


def test_the_nearest_of_the_other_arm_each_once() -> None:
    pairing = Pairing()
    first, second = seen(1.0, "baseline"), seen(2.0, "baseline")
    assert pairing.pair(first) is None and pairing.pair(second) is None
    one = pairing.pair(seen(3.0, "speculative"))
    two = pairing.pair(seen(4.0, "speculative"))
    assert one is not None and two is not None
    assert (one.baseline, two.baseline) == (second, first)
    assert pairing.pair(seen(5.0, "speculative")) is None


def test_only_of_one_category_and_one_moment() -> None:
    pairing = Pairing()
    pairing.pair(seen(0.0, "baseline", "code"))
    assert pairing.pair(seen(1.0, "speculative", "chat")) is None
    assert pairing.pair(seen(LONGEST_APART_S + 1, "speculative", "code")) is None


def test_ratios_only_where_both_know_the_latency() -> None:
    pairing = Pairing()
    pairing.pair(Observation(0.0, "baseline", ttft_s=0.2, tpot_s=0.0, e2e_s=None))
    pair = pairing.pair(Observation(1.0, "speculative", ttft_s=0.3, tpot_s=0.1, e2e_s=1.0))
    assert pair is not None
    assert dict(ratios(pair)) == {"ttft_s": pytest.approx(1.5)}


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "b", None])), max_size=400))
def test_no_request_is_used_twice_and_memory_is_bounded(
    steps: list[tuple[bool, str | None]],
) -> None:
    pairing, used = Pairing(), []
    for i, (speculative, category) in enumerate(steps):
        pair = pairing.pair(seen(i * 0.01, "speculative" if speculative else "baseline", category))
        if pair is not None:
            assert pair.baseline.arm == "baseline" and pair.speculative.arm == "speculative"
            assert pair.baseline.category == pair.speculative.category
            used += [pair.baseline.at_s, pair.speculative.at_s]
    assert len(used) == len(set(used))
    assert all(len(waiting) <= WAITING_MAX for waiting in pairing._waiting.values())
