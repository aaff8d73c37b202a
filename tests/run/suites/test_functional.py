"""Each planted defect is found by the right case; a healthy engine yields no finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from orchestrator.adapters.simulated.answers import VOCABULARY
from orchestrator.adapters.simulated.asker import SimulatedAsker
from orchestrator.adapters.simulated.defects import Defect
from orchestrator.adapters.simulated.in_process import (
    SimulatedDeployer,
    SimulatedProbe,
    SimulatedTelemetry,
)
from orchestrator.adapters.simulated.world import SimulatedWorld
from orchestrator.analyse.suites.functional import judge_functional
from orchestrator.analyse.suites.functional_checks import CHECKS
from orchestrator.plan.deployment import Deployment, DeploymentPair, Speculation
from orchestrator.ports import Answer, Ask, Asker, Endpoint
from orchestrator.run.pool import Pool
from orchestrator.run.suites.functional import Case, FunctionalSuite, cases, cases_for, stop_word
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.record import CaseStatus, SuiteRecord, SuiteResult
from orchestrator.run.suites.runner import SuiteRunner
from orchestrator.store import SuiteFolder

LORA = [{"name": "pirate", "path": "/nowhere"}]


def recorded(
    tmp_path: Path,
    *defects: str,
    arm: str = "speculative",
    seed: int = 0,
    life: bool = False,
    asker: Callable[[SimulatedWorld], Asker] = SimulatedAsker,
    **simulated: Any,
) -> SuiteRecord:
    faults = {"defects": list(defects), "first_life_only": life}
    engine = {
        "max_model_len": 512,
        "lora_modules": LORA,
        "simulated": {"seed": seed, "jitter_sigma": 0.05, **simulated, arm: {"faults": faults}},
    }
    pair = DeploymentPair(
        Deployment("tiny", engine), Deployment("tiny", engine, Speculation("ngram", 3))
    )
    world = SimulatedWorld(seed)
    runner = SuiteRunner(
        pool=Pool(SimulatedDeployer(world)),
        asker=asker(world),
        probe=SimulatedProbe(world),
        telemetry=SimulatedTelemetry(world),
        now=lambda: world.now_s,
        unix_s=lambda: world.unix_s,
    )
    folder = SuiteFolder(tmp_path / f"{seed}")
    job = SuiteJob("functional", pair, seed, FunctionalSuite().settings)
    outcome = runner.run(job, folder, lambda text: None)
    assert outcome.status == "finished", outcome
    record = folder.record()
    assert record is not None
    return record


def judged(tmp_path: Path, *defects: str, **how: Any) -> SuiteResult:
    return judge_functional(recorded(tmp_path, *defects, **how))


def found(result: SuiteResult) -> dict[str, CaseStatus]:
    return {case.case: case.status for case in result.cases if case.status is not CaseStatus.PASS}


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_engine_passes_every_case(tmp_path: Path, seed: int) -> None:
    result = judged(tmp_path, seed=seed)
    assert found(result) == {}
    assert (result.ok, result.complete, result.simulated) == (True, True, True)
    assert len(result.cases) == 30
    assert result.verdict == "compatible: 30 of 30 cases pass in both arms"


RIGHT_CASES = {
    Defect.GREEDY_DIFFERS: {"greedy": "differs"},
    Defect.IGNORES_TEMPERATURE: {"temperature": "fail"},
    Defect.IGNORES_TOP_P: {"top_p": "fail"},
    Defect.IGNORES_TOP_K: {"top_k": "fail"},
    Defect.IGNORES_MIN_P: {"min_p": "fail"},
    Defect.IGNORES_REPETITION_PENALTY: {"repetition_penalty": "fail"},
    Defect.IGNORES_PRESENCE_PENALTY: {"presence_penalty": "fail"},
    Defect.IGNORES_FREQUENCY_PENALTY: {"frequency_penalty": "fail"},
    Defect.IGNORES_SEED: {"seed": "fail"},
    Defect.IGNORES_LOGIT_BIAS: {"logit_bias": "fail"},
    Defect.IGNORES_CONSTRAINTS: {
        "json_object": "fail", "json_schema": "fail", "regex": "fail", "choice": "fail",
    },
    Defect.IGNORES_TOOLS: {"tool_named": "fail"},
    Defect.IGNORES_ECHO: {"echo": "fail"},
    Defect.IGNORES_SYSTEM: {"system_prompt": "fail"},
    Defect.IGNORES_ADAPTER: {"lora": "differs"},
    Defect.OVERRUNS_STOP_STRING: {"stop_string": "fail"},
    Defect.OVERRUNS_STOP_TOKEN: {"stop_token": "fail"},
    Defect.OVERRUNS_MAX_TOKENS: {"max_tokens_1": "fail"},
    Defect.ENDS_EARLY_NEAR_LIMIT: {"long_input": "fail"},
    Defect.ONE_CHOICE_ONLY: {"n_choices": "fail"},
    Defect.DROPS_LOGPROBS: {"logprobs": "fail"},
    Defect.DROPS_PROMPT_LOGPROBS: {"prompt_logprobs": "fail"},
    Defect.STREAM_DROPS_TEXT: {"streaming": "fail"},
    Defect.MIXES_UP_BATCH: {"mixed_batch": "differs"},
    Defect.REFUSES_MIN_P: {"min_p": "unsupported with speculation"},
    Defect.CRASHES_ON_PROMPT_LOGPROBS: {"prompt_logprobs": "crashed"},
}  # fmt: skip

ALSO = {
    Defect.GREEDY_DIFFERS: None,
    Defect.IGNORES_PRESENCE_PENALTY: {"mixed_batch"},
    Defect.OVERRUNS_STOP_STRING: {"mixed_batch"},
    Defect.OVERRUNS_MAX_TOKENS: None,
    Defect.STREAM_DROPS_TEXT: None,
    Defect.IGNORES_CONSTRAINTS: {"mixed_batch"},
    Defect.IGNORES_TOP_K: {"mixed_batch"},
}
"""Other cases that a defect may show in; None: many, it goes through everything."""


def test_every_defect_has_its_case() -> None:
    of_losslessness = {Defect.ACCEPTS_TOO_MUCH, Defect.BIASED_BONUS_TOKEN}
    assert set(RIGHT_CASES) == set(Defect) - of_losslessness
    covered = {case for expected in RIGHT_CASES.values() for case in expected}
    names = {case.name for case in cases()}
    # What is shared by everything shows in the general cases first.
    general = {"completion", "several_turns", "continue_final_message", "tool_auto"}
    assert covered == names - general


@pytest.mark.parametrize("defect", list(RIGHT_CASES))
def test_a_planted_defect_is_found_by_the_right_case(tmp_path: Path, defect: Defect) -> None:
    result = judged(tmp_path, defect.value)
    seen = found(result)
    for case, status in RIGHT_CASES[defect].items():
        assert seen.get(case) == status, (seen, next(c for c in result.cases if c.case == case))
    allowed = ALSO.get(defect, set())
    if allowed is not None:
        assert set(seen) <= set(RIGHT_CASES[defect]) | allowed
    assert result.ok is False
    assert all(case.reproduce for case in result.findings)


def test_a_defect_of_both_arms_is_no_finding(tmp_path: Path) -> None:
    engine_wide = {"faults": {"defects": ["ignores_top_k"]}}
    result = judged(tmp_path, "ignores_top_k", **engine_wide)
    assert found(result)["top_k"] is CaseStatus.BOTH_FAIL
    assert "top_k" not in {case.case for case in result.findings}


def test_a_refusal_of_what_the_baseline_does_not_do_is_no_finding(tmp_path: Path) -> None:
    record = recorded(
        tmp_path, "refuses_min_p", baseline={"faults": {"defects": ["ignores_min_p"]}}
    )
    (min_p,) = [case for case in judge_functional(record).cases if case.case == "min_p"]
    assert min_p.status is CaseStatus.BOTH_FAIL, min_p.seen


def test_what_is_asked_together_is_shown_together(tmp_path: Path) -> None:
    (mixed,) = [c for c in judged(tmp_path, "mixes_up_batch").findings if c.case == "mixed_batch"]
    assert mixed.reproduce is not None
    *lines, last = mixed.reproduce.splitlines()
    assert [line.endswith(" &") for line in lines] == [True] * 8 and last == "wait"


def test_a_baseline_that_fails_alone_is_no_finding_either(tmp_path: Path) -> None:
    result = judged(tmp_path, "ignores_top_k", arm="baseline")
    (top_k,) = [case for case in result.cases if case.case == "top_k"]
    assert top_k.status is CaseStatus.PASS
    assert "the baseline does not" in top_k.seen


def test_differences_that_the_baseline_has_with_itself_are_no_finding(tmp_path: Path) -> None:
    """The floor: the baseline's first life answers otherwise than its relaunched copy."""
    record = recorded(tmp_path, "greedy_differs")
    same = tuple(
        replace(asked, answer=next(
            other.answer for other in record.asked
            if (other.case, other.part, other.subject) == (asked.case, asked.part, "speculative")
        )) if asked.subject == "baseline_again" else asked
        for asked in record.asked
    )  # fmt: skip
    greedy = judge_functional(replace(record, asked=same)).cases[0]
    assert (greedy.case, greedy.status) == ("greedy", CaseStatus.PASS)
    assert "so does the baseline relaunched" in greedy.seen


class Telling(SimulatedAsker):
    """Tells the prompt's ids as well, and in the second pass how likely the two tokens were."""

    def __init__(self, world: SimulatedWorld, other_logprob: float) -> None:
        super().__init__(world)
        self._other = other_logprob

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        sound = super().ask(endpoint, asks, in_flight=in_flight)
        return [self._told(ask, answer) for ask, answer in zip(asks, sound, strict=True)]

    def _told(self, ask: Ask, answer: Answer) -> Answer:
        asked = orjson.loads(ask.body) if ask.body else {}
        if asked.get("return_tokens_as_token_ids"):
            best = {f"token_id:{token}": self._other for token in range(VOCABULARY)}
            best["token_id:0"] = -0.1
            choice = {"text": "x", "finish_reason": "length", "logprobs": {"top_logprobs": [best]}}
            return replace(answer, body=orjson.dumps({"choices": [choice]}).decode())
        if asked.get("return_token_ids") and not asked.get("stream"):
            told = orjson.loads(answer.body)
            return replace(answer, body=orjson.dumps(told | {"prompt_token_ids": [7]}).decode())
        return answer


@pytest.mark.parametrize(
    ("other_logprob", "status"), [(-0.2, CaseStatus.PASS), (-2.0, CaseStatus.DIFFERS)]
)
def test_answers_that_part_at_a_tie_are_no_finding(
    tmp_path: Path, other_logprob: float, status: CaseStatus
) -> None:
    """bfloat16: 0.25 nats are two units in the last place of a logit."""
    asker = lambda world: Telling(world, other_logprob)  # noqa: E731
    record = recorded(tmp_path, "greedy_differs", asker=asker)
    second = [one for one in record.asked if one.case == "margins speculative"]
    assert second and {one.subject for one in second} == {"baseline"}
    assert all(orjson.loads(one.ask.body)["prompt"][0] == 7 for one in second)
    cases = {case.case: case for case in judge_functional(record).cases}
    assert cases["greedy"].status is status, cases["greedy"].seen
    assert ("at a tie of the target" in cases["greedy"].seen) is (status is CaseStatus.PASS)
    # A penalty changes the scores: whether at a tie is not known, unless nothing else parts at one.
    unknown = CaseStatus.CANNOT_TELL if status is CaseStatus.PASS else CaseStatus.DIFFERS
    assert cases["presence_penalty"].status is unknown, cases["presence_penalty"].seen
    # What a penalty or a grammar has changed is not explained by the target's own scores.
    assert not [one.part for one in second if "penalised" in one.part or "json" in one.part]


def test_requests_made_from_other_answers_are_not_compared(tmp_path: Path) -> None:
    """`long_input` asks about the arm's own opening answer, and the openings part."""
    record = recorded(tmp_path, "greedy_differs")
    asked = {one.subject: one for one in record.asked
             if (one.case, one.part) == ("long_input", "whole")}  # fmt: skip
    mine, its = (orjson.loads(asked[arm].ask.body) for arm in ("baseline", "speculative"))
    assert mine["prompt"] != its["prompt"]
    (case,) = [case for case in judge_functional(record).cases if case.case == "long_input"]
    assert case.status is CaseStatus.PASS, case.seen


def test_a_crash_is_recorded_the_engine_restarted_and_the_rest_run(tmp_path: Path) -> None:
    record = recorded(tmp_path, "crashes_on_prompt_logprobs")
    dead = [state for state in record.health if not state.healthy]
    assert [(s.case, s.subject, s.restarted) for s in dead] == [
        ("prompt_logprobs", "speculative", True)
    ]
    result = judge_functional(record)
    (case,) = result.findings
    assert case.crashed == ("speculative",)
    assert "the speculative engine died" in case.seen
    assert not [c for c in result.cases if c.status is CaseStatus.NOT_RUN]


def test_health_is_looked_at_after_every_case(tmp_path: Path) -> None:
    record = recorded(tmp_path)
    looked = {state.case for state in record.health}
    assert {case.name for case in cases_for(record.baseline["engine"])} <= looked


def test_what_could_not_be_asked_is_not_passed(tmp_path: Path) -> None:
    record = recorded(tmp_path)
    early = tuple(a for a in record.asked if a.case in ("models", "opening", "greedy"))
    result = judge_functional(replace(record, asked=early, complete=False))
    statuses = {case.status for case in result.cases[1:]}
    assert statuses == {CaseStatus.NOT_RUN}
    assert not result.complete


def test_every_case_names_a_check_that_exists() -> None:
    assert {case.check for case in cases()} == set(CHECKS)
    assert len({case.name for case in cases()}) == len(cases())


def test_cases_that_need_an_argument_are_left_out_without_it() -> None:
    assert "tool_auto" not in {case.name for case in cases_for({})}
    with_tools = {case.name for case in cases_for({"enable_auto_tool_choice": True})}
    assert "tool_auto" in with_tools
    assert isinstance(cases()[0], Case)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("one two three four five six", "five"),
        ("again again again again", None),
        ("", None),
        ("word", None),
        ("to be or not to be seen by none", "seen"),
    ],
)
def test_the_stop_word_comes_first_where_it_cuts(text: str, word: str | None) -> None:
    assert stop_word(text) == word
