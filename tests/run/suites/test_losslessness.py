"""The losslessness suite end to end, on virtual time: planted defects are found, a right engine
is not accused, and what could not be judged is said."""

import json

import pytest

from orchestrator.analyse.suites.losslessness import judge_losslessness
from orchestrator.analyse.suites.sampled import LEVEL, judge_samples
from orchestrator.run.suites.losslessness import GreedySize, LosslessnessSuite, SamplingSize
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteResult
from tests.run.suites.sampling_server import SamplingServer, asked_more_than_once
from tests.run.suites.toy_subjects import bench

GREEDY_ONLY = LosslessnessSuite(temperatures=())
SMALL = LosslessnessSuite(
    temperatures=(0.6,), sampling=SamplingSize(prompts=4, samples=60, tokens=8)
)


USUAL = LosslessnessSuite(
    temperatures=(0.6,), sampling=SamplingSize(prompts=8, samples=100, tokens=8)
)


def judged(
    server: SamplingServer, suite: LosslessnessSuite = GREEDY_ONLY, seed: int = 0
) -> SuiteResult:
    return judge_losslessness(suite.run(bench(server, seed=seed)))


def case(result: SuiteResult, name: str) -> CaseResult:
    (found,) = [one for one in result.cases if one.case == name]
    return found


def test_a_right_engine_is_lossless() -> None:
    found = judged(SamplingServer())
    assert (found.verdict, found.ok, found.findings) == ("lossless", True, ())
    assert found.metrics["exact_match_rate"] == 1.0
    assert found.metrics["exact_match_rate_relaunched"] == 1.0
    assert found.metrics["exact_match_rate_other_batch"] == 1.0
    assert found.simulated


def test_divergence_at_ties_is_no_fault() -> None:
    found = judged(SamplingServer(defect="greedy flips ties"))
    assert found.verdict == "equal up to ties"
    assert found.metrics["divergences_near_tie"] > 0
    assert found.metrics["divergences_real"] == 0
    assert found.findings == ()


def test_wrong_greedy_acceptance_is_caught_with_its_margin_and_a_reproduction() -> None:
    found = judged(SamplingServer(defect="greedy accepts too much"))
    assert (found.verdict, found.ok) == ("not lossless", False)
    assert case(found, "temperature 0").status is CaseStatus.FAIL
    worst = found.findings[1]
    assert worst.status is CaseStatus.DIFFERS and worst.reproduce is not None
    assert worst.evidence["cause"] == "real" and worst.evidence["margin_nats"] > 0.25
    assert "\n" not in worst.reproduce
    assert worst.reproduce.startswith('for URL in "$BASELINE" "$SPECULATIVE"; do curl ')
    assert '"$URL/v1/chat/completions"' in worst.reproduce


def test_lost_tokens_are_caught() -> None:
    assert judged(SamplingServer(defect="loses tokens")).verdict == "not lossless"


def test_a_batch_that_flips_ties_in_every_engine_is_the_floor() -> None:
    found = judged(SamplingServer(flips_in_batch=True))
    assert found.verdict == "equal up to ties"
    assert found.metrics["exact_match_rate_other_batch"] < 1
    assert found.metrics["exact_match_rate_relaunched"] == 1


def test_without_token_ids_text_is_compared_and_nothing_is_triaged() -> None:
    found = judged(SamplingServer(defect="greedy flips ties", token_ids=False))
    assert found.verdict in ("cannot tell", "not lossless")
    assert found.metrics["divergences_not_triaged"] > 0
    assert any("return_token_ids" in note for note in found.notes)


def test_where_nothing_was_drafted_nothing_was_tested() -> None:
    found = judged(SamplingServer(drafts=False))
    assert (found.verdict, found.ok) == ("cannot tell", None)
    assert any("nothing was drafted" in note for note in found.notes)


def test_a_crash_is_a_finding_and_the_rest_goes_on() -> None:
    server = SamplingServer(crash_on=12)
    found = judged(server)
    assert server.restarts == 1
    answered = case(found, "answered")
    assert (answered.status, answered.crashed) == (CaseStatus.CRASHED, ("speculative",))
    assert found.metrics["greedy_prompts"] >= 40


def test_time_that_runs_out_is_said() -> None:
    server = SamplingServer()
    record = GREEDY_ONLY.run(bench(server, seconds=20.0))
    assert not record.complete
    assert any("time ran out" in note for note in judge_losslessness(record).notes)


def test_no_engine_is_asked_a_prompt_in_two_uses() -> None:
    server = SamplingServer()
    SMALL.run(bench(server))
    assert server.asked and asked_more_than_once(server) == set()


def test_the_missing_extra_is_said_with_the_command_that_mends_it() -> None:
    found = judge_losslessness(SMALL.run(bench(SamplingServer(), embeds=False)))
    missing = case(found, "sampled at 0.6: sentence embeddings")
    assert missing.status is CaseStatus.NOT_RUN
    assert "pip install 'speculation-orchestrator[quality]'" in missing.seen


def test_a_record_judged_again_says_the_same() -> None:
    record = SMALL.run(bench(SamplingServer(1, "ignores temperature")))
    assert judge_losslessness(record) == judge_losslessness(record)
    json.dumps(dict(record.extra))  # plain JSON


# --- above temperature 0, at the sizes that docs/suites.md states

STATED = {
    "accepts too much": (SamplingSize(prompts=8, samples=100, tokens=8), 3),
    "ignores temperature": (SamplingSize(prompts=8, samples=100, tokens=8), 3),
    "residual not taken": (SamplingSize(prompts=8, samples=200, tokens=8), 3),
    "biased bonus token": (SamplingSize(prompts=16, samples=400, tokens=8), 2),
}
NO_GREEDY = GreedySize(alone=20, floor=0, batched=0, tokens=2)


def caught(defect: str, seeds: range, size: SamplingSize, length: int) -> int:
    """By the token test alone at half the level, which is what the kernel test leaves to it."""
    suite = LosslessnessSuite((0.6,), NO_GREEDY, size)
    hits = 0
    for seed in seeds:
        server = SamplingServer(seed, defect, length, relaunched=False)
        record = suite.run(bench(server, seed=seed, embeds=False))
        (verdict,) = judge_samples(record, level=LEVEL / 2).verdicts.values()
        hits += verdict.value == "not lossless"
    return hits


@pytest.mark.parametrize("defect", ["accepts too much", "ignores temperature"])
def test_gross_defects_of_a_sampler_are_caught(defect: str) -> None:
    assert caught(defect, range(1), *STATED[defect]) == 1


@pytest.mark.power
@pytest.mark.parametrize("defect", list(STATED))
def test_every_defect_is_caught_at_its_stated_size(defect: str) -> None:
    """Stated power 0.9 at level 0.001: 9 of 10 seeds."""
    assert caught(defect, range(100, 110), *STATED[defect]) >= 9


def test_a_wrong_sampler_is_named_by_both_tests_beside_the_floor() -> None:
    found = judged(SamplingServer(1, "ignores temperature"), USUAL)
    assert case(found, "sampled at 0.6: token frequencies").status is CaseStatus.FAIL
    assert case(found, "sampled at 0.6: sentence embeddings").status is CaseStatus.FAIL
    assert case(found, "temperature 0").status is CaseStatus.PASS
    assert (found.verdict, found.ok) == ("not lossless", False)
    assert found.metrics["sampled_p_value_t0.6_tokens"] < 0.0005
    assert found.metrics["sampled_p_value_again_t0.6_tokens"] > 0.0005


def test_a_baseline_that_differs_from_itself_convicts_nobody() -> None:
    class Drifting(SamplingServer):
        def _tokens(self, subject, body, last, in_flight):  # type: ignore[no-untyped-def]
            if body["temperature"] and subject != "baseline":
                body = {**body, "temperature": 3.0}
            return super()._tokens(subject, body, last, in_flight)

    found = judge_losslessness(SMALL.run(bench(Drifting(1), embeds=False)))
    assert found.verdict == "cannot tell"
    tokens = case(found, "sampled at 0.6: token frequencies")
    assert tokens.status is CaseStatus.CANNOT_TELL and tokens.seen.count("different") == 1
    assert tokens.evidence["p_value"] < 0.0005 > tokens.evidence["p_value_baseline_again"]


@pytest.mark.slow
def test_a_healthy_engine_yields_no_finding_over_20_seeds() -> None:
    for seed in range(20):
        found = judged(SamplingServer(seed), SMALL, seed)
        assert (found.findings, found.verdict) == ((), "lossless"), seed
