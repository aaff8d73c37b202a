"""Each planted defect is found by the case made for it; sound engines yield no finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.analyse.suites.boundary import judge_boundary
from orchestrator.ports import Answer, Ask
from orchestrator.records import RequestError
from orchestrator.run.suites.boundary import BoundarySuite
from orchestrator.run.suites.boundary_cases.lengths import seeded_cases
from orchestrator.run.suites.boundary_cases.target import Target
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteResult
from tests.run.suites.planted_world import Arm, Override, PlantedWorld, Sound, refusal

SUITE = BoundarySuite(disconnects=60)
Asked = Callable[[Ask, dict[str, Any]], bool]


PROMISED = """empty_prompt one_token whitespace null_bytes invalid_utf8 lone_surrogate_high
    right_to_left combining_characters emoji_joined control_characters special_tokens long_word
    prompt_at_limit_minus_1 prompt_at_limit prompt_at_limit_plus_1 prompt_far_past_limit
    ten_thousand_repetitions ngram_loops unseen_scripts temperature_0 temperature_1e-6
    temperature_2 temperature_100 top_p_0 top_p_1e-9 min_p_1 min_p_negative temperature_huge
    max_tokens_0 max_tokens_negative n_absurd malformed_json wrong_types wrong_content_type
    body_too_large slow_sender slow_reader disconnect_at_first_token disconnect_at_mid_stream
    disconnect_thousands duplicate_ids flood seeded_split_prefill"""


def when(asked: Asked, answer: Callable[[Answer], Answer]) -> Override:
    """Where asked, the sound answer is made into another."""
    return lambda arm, ask, body, sound: answer(sound()) if asked(ask, body) else None


def crash(asked: Asked) -> Override:
    def defect(arm: Arm, ask: Ask, body: dict[str, Any], sound: Sound) -> Answer | None:
        if not asked(ask, body):
            return None
        arm.alive = False
        return Answer(None, "", error=RequestError.RESET, error_text="connection reset")

    return defect


def has(**fields: Any) -> Asked:
    return lambda ask, body: all(body.get(name) == value for name, value in fields.items())


def prompt_has(text: str) -> Asked:
    return lambda ask, body: text in str(body.get("prompt"))


def tokens(count: int) -> Asked:
    return lambda ask, body: isinstance(body.get("prompt"), list) and len(body["prompt"]) == count


def judged(world: PlantedWorld, suite: BoundarySuite = SUITE) -> SuiteResult:
    return judge_boundary(suite.run(world.bench()))


def found(speculative: Override, *only: str) -> dict[str, CaseResult]:
    world = PlantedWorld(defects={"speculative": speculative})
    return {r.case: r for r in judged(world, BoundarySuite(disconnects=500, only=only)).findings}


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]
)
def test_sound_engines_yield_no_finding(seed: int) -> None:
    result = judged(PlantedWorld(seed=seed))
    assert [(case.case, case.seen) for case in result.findings] == []
    assert result.ok is True and result.complete
    assert len(result.cases) >= 100


def test_every_case_the_suite_promises_is_there() -> None:
    names = {case.case for case in judged(PlantedWorld()).cases}
    assert set(PROMISED.split()) - names == set()


def test_a_case_that_kills_the_engine_is_recorded_and_the_rest_goes_on() -> None:
    world = PlantedWorld(defects={"speculative": crash(prompt_has("\x00"))})
    result = judged(world)
    (finding,) = result.findings
    assert (finding.case, finding.status) == ("null_bytes", CaseStatus.CRASHED)
    assert finding.crashed == ("speculative",)
    assert finding.reproduce is not None and finding.reproduce.startswith("curl")
    assert world.arms["speculative"].starts == 2
    assert result.complete and sum(c.status is CaseStatus.NOT_RUN for c in result.cases) == 0


def test_a_crash_of_the_baseline_is_a_finding_too() -> None:
    world = PlantedWorld(defects={"baseline": crash(has(temperature=100))})
    (finding,) = judged(world).findings
    assert (finding.case, finding.crashed) == ("temperature_100", ("baseline",))


def test_an_engine_that_stays_dead_ends_the_suite_and_says_so() -> None:
    world = PlantedWorld(defects={"speculative": crash(has(min_p=1))}, cannot_restart=True)
    result = judged(world)
    assert not result.complete and result.ok is False
    assert any("could not be started again" in note for note in result.notes)


def not_json(sound: Answer) -> Answer:
    return replace(sound, body="<html>")


def hangs(sound: Answer) -> Answer:
    return Answer(None, "", error=RequestError.TOTAL_TIMEOUT, error_text="30 s", seconds=30.0)


def slow(sound: Answer) -> Answer:
    return replace(sound, seconds=sound.seconds + 9.0)


def one_more_token(sound: Answer) -> Answer:
    whole = json.loads(sound.body)
    whole["usage"]["completion_tokens"] += 1
    return replace(sound, body=json.dumps(whole))


def accepted(sound: Answer) -> Answer:
    choice = {"index": 0, "text": "x", "finish_reason": "length"}
    return Answer(200, json.dumps({"choices": [choice]}), content_type="application/json")


def without_end(sound: Answer) -> Answer:
    return replace(sound, events=sound.events[:-1])


def instead(status: int, message: str) -> Callable[[Answer], Answer]:
    return lambda sound: refusal(status, message)


@pytest.mark.parametrize(
    ("case", "asked", "answer", "status"),
    [
        ("prompt_at_limit", tokens(511), instead(500, "boom"), CaseStatus.FAIL),
        ("emoji_flags", prompt_has("🇫🇷"), not_json, CaseStatus.FAIL),
        ("min_p_1", has(min_p=1), hangs, CaseStatus.FAIL),
        ("ngram_loops", prompt_has("tick tock"), slow, CaseStatus.FAIL),
        ("logit_bias_extreme", has(logit_bias={"5": 100, "6": -100}),
         instead(400, "not with speculation"), CaseStatus.REFUSED),
        ("max_tokens_negative", has(max_tokens=-1),
         accepted, CaseStatus.FAIL),
        ("unknown_model", has(model="tiny-x"),
         instead(404, "draft tiny-x does not exist"), CaseStatus.DIFFERS),
        ("answer_to_limit", lambda a, b: b.get("max_tokens") == 12 and b.get("ignore_eos"),
         one_more_token, CaseStatus.FAIL),
        ("slow_reader", lambda a, b: a.read_bytes_per_s is not None, without_end, CaseStatus.FAIL),
        ("flood", prompt_has("Request "), instead(500, "queue"), CaseStatus.FAIL),
    ],
)  # fmt: skip
def test_a_planted_defect_is_found_by_its_case(
    case: str, asked: Asked, answer: Callable[[Answer], Answer], status: CaseStatus
) -> None:
    findings = found(when(asked, answer), case, "one_token", "temperature_2")
    assert {name: result.status for name, result in findings.items()} == {case: status}


def test_a_kv_cache_that_does_not_come_back_after_disconnects() -> None:
    def leaks(arm: Arm, ask: Ask, body: dict[str, Any], sound: Sound) -> Answer | None:
        if ask.abandon_after_events is not None:
            arm.kv += 0.0001
        return None

    (finding,) = found(leaks, "one_token", "disconnect_thousands", "flood").values()
    assert finding.case == "disconnect_thousands"
    assert "5.00% of the KV cache" in finding.seen


def test_memory_that_grows_in_one_arm_only() -> None:
    def grows(arm: Arm, ask: Ask, body: dict[str, Any], sound: Sound) -> Answer | None:
        if "Request " in str(body.get("prompt")):
            arm.rss += 32 * 2**20
        return None

    few = BoundarySuite(only=("one_token", "flood"))
    one_arm = PlantedWorld(defects={"speculative": grows})
    assert [finding.case for finding in judged(one_arm, few).findings] == ["flood"]
    both = PlantedWorld(defects={"speculative": grows, "baseline": grows})
    assert judged(both, few).findings == ()


def test_what_happens_once_and_not_again_is_no_finding() -> None:
    done: list[int] = []

    def once(arm: Arm, ask: Ask, body: dict[str, Any], sound: Sound) -> Answer | None:
        if body.get("temperature") != 2 or done:
            return None
        done.append(1)
        return refusal(500, "hiccup")

    assert found(once, "temperature_2") == {}


def test_what_neither_arm_does_is_shown_and_is_no_finding() -> None:
    boom = when(has(temperature=2), instead(500, "boom"))
    world = PlantedWorld(defects={"baseline": boom, "speculative": boom})
    result = judged(world)
    shown = {case.case: case for case in result.cases}
    assert shown["temperature_2"].status is CaseStatus.BOTH_FAIL
    assert "boom" in shown["temperature_2"].seen
    assert result.findings == ()


def test_when_time_is_up_nothing_more_is_called_passed() -> None:
    world = PlantedWorld()
    result = judge_boundary(SUITE.run(world.bench(seconds=0.5)))
    assert not result.complete and result.ok is None
    assert 0 < len(result.cases) < 100
    assert any("time was up" in note for note in result.notes)


def test_every_case_is_put_once_before_any_is_put_again() -> None:
    slower = when(lambda ask, body: "prompt" in body, slow)
    world = PlantedWorld(defects={"speculative": slower})
    record = BoundarySuite(disconnects=60, only=("one_token", "null_bytes", "top_p_0")).run(
        world.bench()
    )
    put = dict.fromkeys((one.repeat, one.case) for one in record.asked if one.part != "canary")
    names = ["one_token", "null_bytes", "top_p_0"]
    assert list(put) == [(repeat, name) for repeat in range(3) for name in names]


def test_what_differs_when_time_is_up_was_put_less_often_and_the_note_says_so() -> None:
    passed: list[float] = []

    def takes_long(arm: Arm, ask: Ask, body: dict[str, Any], sound: Sound) -> Answer | None:
        if body.get("temperature") != 2:
            return None
        passed.append(600.0)
        return slow(sound())

    bench = PlantedWorld(defects={"speculative": takes_long}).bench(seconds=500.0)
    now = bench.now
    bench.now = lambda: now() + sum(passed)
    record = BoundarySuite(only=("one_token", "temperature_2")).run(bench)
    assert record.notes == ("time was up: temperature_2 was put once of 3 times",)
    assert record.complete


def test_a_case_of_many_rounds_takes_no_more_than_its_share_of_the_time() -> None:
    suite = BoundarySuite(disconnects=1000, only=("disconnect_thousands", "one_token"))
    record = suite.run(PlantedWorld().bench(seconds=1.0))
    for arm in ("baseline", "speculative"):
        clients = [one for one in record.asked
                   if (one.case, one.subject) == ("disconnect_thousands", arm)]  # fmt: skip
        assert 250 <= len(clients) < 1000
        assert any(f"{arm}: 1 of 4 rounds in its share" in note for note in record.notes)
    assert record.complete


def test_an_arm_that_answers_before_the_client_leaves_is_no_finding() -> None:
    def leaves(sound: Answer) -> Answer:
        return replace(sound, status=None, body="", seconds=0.1, abandoned=True)

    waiting: Asked = lambda ask, body: ask.abandon_after_s is not None  # noqa: E731
    answers = when(waiting, lambda sound: replace(sound, abandoned=False, status=200))
    world = PlantedWorld(defects={"baseline": when(waiting, leaves), "speculative": answers})
    suite = BoundarySuite(only=("disconnect_while_waiting",))
    record = suite.run(world.bench())
    assert {one.subject: one.answer.abandoned for one in record.asked if one.ask.abandon_after_s} \
        == {"baseline": True, "speculative": False}  # fmt: skip
    (case,) = judge_boundary(record).cases
    assert case.status is CaseStatus.PASS, case.seen


def test_the_prefill_that_is_to_be_split_does_not_fit_into_one_step() -> None:
    """Unless the engine says so, a step may take thousands of tokens."""
    for budget, requests in ((None, 16), (600, 4)):
        target = Target(512, 8, budget, 1000, ())
        (case,) = seeded_cases(target)
        asks = case.asks("tiny")
        tokens = sum(len(json.loads(ask.body)["prompt"]) for ask in asks)
        assert len(asks) == case.in_flight == requests
        assert tokens > (budget or 7900)
