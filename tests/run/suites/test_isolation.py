"""A planted leak is found with its size; without one, nothing is."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from orchestrator.analyse.suites.isolation import judge_isolation
from orchestrator.ports import Answer, Ask
from orchestrator.run.suites.isolation import IsolationSuite
from orchestrator.run.suites.record import CaseStatus, SuiteResult
from tests.run.suites.planted_world import Arm, Override, PlantedWorld, Sound, refusal

SUITE = IsolationSuite(pairs=14, secret_words=60)


def judged(world: PlantedWorld) -> SuiteResult:
    return judge_isolation(SUITE.run(world.bench()))


def remembers(
    *, salt_counts: bool, faster: float = 1.0, more: int = 0, pace: float = 1.0
) -> Override:
    """A prompt that came before is answered `faster`, with `more` tokens accepted, at `pace` times
    the usual time from token to token."""

    def defect(arm: Arm, ask: Ask, body: dict[str, Any], sound: Sound) -> Answer | None:
        if not body.get("stream"):
            return None
        key = str(body["prompt"]) + (str(body.get("cache_salt")) if salt_counts else "")
        known = key in arm.seen
        arm.seen.add(key)
        answer = sound()
        if not known:
            return answer
        arm.accepted += more
        saved = answer.events[0][0] * (1 - 1 / faster)
        first = answer.events[0][0]
        events = tuple((first + pace * (at - first) - saved, data) for at, data in answer.events)
        return dataclasses.replace(answer, events=events)

    return defect


@pytest.mark.parametrize("seed", range(20))
def test_without_a_leak_none_is_found(seed: int) -> None:
    result = judged(PlantedWorld(seed=seed))
    assert [case.case for case in result.cases if case.status is not CaseStatus.PASS] == []
    assert result.ok is True and result.verdict == "no leak found"
    assert len(result.cases) == 6


def test_a_prefix_cache_of_the_speculative_arm_alone_is_a_finding_with_its_size() -> None:
    world = PlantedWorld(seed=1)
    world.defects["speculative"] = remembers(salt_counts=True, faster=4.0)
    result = judged(world)
    (finding,) = result.findings
    assert finding.case == "time to first token, no salt"
    seen = finding.evidence["speculative"]
    assert seen["low"] < 0.25 < seen["high"] < 0.5
    assert finding.evidence["baseline"]["leak"] is False
    assert finding.reproduce is not None and finding.reproduce.count("curl") == 2


def test_a_prefix_cache_of_both_arms_is_shown_as_both_arms_own() -> None:
    world = PlantedWorld(seed=2)
    for arm in ("baseline", "speculative"):
        world.defects[arm] = remembers(salt_counts=True, faster=4.0)  # type: ignore[index]
    result = judged(world)
    assert result.findings == () and result.verdict == "1 in both arms"
    shown = {case.case: case.status for case in result.cases}
    assert shown["time to first token, no salt"] is CaseStatus.BOTH_FAIL
    assert shown["time to first token, own salts"] is CaseStatus.PASS


def test_a_tree_shared_by_all_tenants_shows_in_acceptance_whatever_the_salt() -> None:
    world = PlantedWorld(seed=3)
    world.defects["speculative"] = remembers(salt_counts=False, more=12)
    result = judged(world)
    assert {case.case for case in result.findings} == {
        "acceptance, no salt",
        "acceptance, own salts",
    }
    assert result.verdict == "2 leaks through speculation"
    effect = result.findings[0].evidence["speculative"]
    assert effect["low"] < 12 / 24 < effect["high"]


def test_a_pace_that_tells_is_found_with_its_size() -> None:
    world = PlantedWorld(seed=4)
    world.defects["speculative"] = remembers(salt_counts=False, pace=0.5)
    found = {case.case: case.evidence["speculative"] for case in judged(world).findings}
    assert found.keys() == {"time per token, no salt", "time per token, own salts"}
    assert all(seen["low"] < 0.5 < seen["high"] < 0.8 for seen in found.values())


def test_an_engine_that_knows_no_salt_says_so() -> None:
    refuse: Override = lambda arm, ask, body, sound: (  # noqa: E731
        refusal(400, "unknown field cache_salt") if "cache_salt" in body else None
    )
    world = PlantedWorld(defects={"baseline": refuse, "speculative": refuse})
    shown = {case.case: case.status for case in judged(world).cases}
    assert shown["time to first token, own salts"] is CaseStatus.UNSUPPORTED
    assert shown["time to first token, no salt"] is CaseStatus.PASS


def test_time_that_is_up_leaves_it_open() -> None:
    result = judge_isolation(SUITE.run(PlantedWorld().bench(seconds=1.0)))
    assert not result.complete and result.ok is None
