"""What a server does not show, shows wrongly, or stops showing under load is on the score card."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.analyse.suites.observability import judge_observability
from orchestrator.analyse.suites.operator_signals import SIGNALS
from orchestrator.ports import Answer, Ask
from orchestrator.run.suites.observability import ObservabilitySuite
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteResult
from tests.run.suites.planted_world import Arm, Override, PlantedWorld, Sound, refusal

SUITE = ObservabilitySuite(rounds=2, requests=12)


def judged(world: PlantedWorld) -> SuiteResult:
    return judge_observability(SUITE.run(world.bench()))


def cases(world: PlantedWorld) -> dict[str, CaseResult]:
    return {case.case: case for case in judged(world).cases}


def on_page(change: Callable[[str], str]) -> Override:
    """The page of metrics, changed."""

    def defect(arm: Arm, ask: Ask, body: dict[str, Any], sound: Sound) -> Answer | None:
        if ask.path != "/metrics":
            return None
        answer = sound()
        return replace(answer, body=change(answer.body))

    return defect


def without(metric: str) -> Override:
    return on_page(lambda page: "\n".join(x for x in page.splitlines() if metric not in x) + "\n")


@pytest.mark.parametrize("seed", range(20))
def test_a_sound_engine_loses_nothing_with_speculation(seed: int) -> None:
    result = judged(PlantedWorld(seed))
    assert result.findings == () and result.ok is True
    shown = {case.case for case in result.cases if case.status is CaseStatus.PASS}
    assert {
        "requests running", "use of the KV cache", "output tokens", "drafts", "accepted tokens",
        "accepted tokens, by position", "tokens agree", "acceptance adds up", "scraped under load",
        "trace context accepted", "/health answers",
    } <= shown  # fmt: skip


def test_what_is_missing_comes_with_the_way_to_get_it() -> None:
    result = judged(PlantedWorld())
    missing = [case for case in result.cases if case.status is CaseStatus.BOTH_FAIL]
    assert {"time to first token", "time in drafting and verifying", "spans"} <= {
        case.case for case in missing
    }
    assert all(case.seen.split("; to get it: ")[1] for case in missing)
    assert result.metrics["observability_score"] == pytest.approx(
        1 - len(missing) / len(result.cases)
    )
    assert any("time to first token" in note for note in result.notes)


def test_a_signal_that_only_the_baseline_shows_is_a_finding() -> None:
    world = PlantedWorld(defects={"speculative": without("vllm:num_requests_running")})
    (finding,) = judged(world).findings
    assert (finding.case, finding.status) == ("requests running", CaseStatus.FAIL)
    assert "not exposed" in finding.seen


def test_acceptance_that_is_not_counted_is_missing_though_the_baseline_has_none() -> None:
    world = PlantedWorld(defects={"speculative": without("accepted_tokens_total")})
    shown = cases(world)
    assert shown["accepted tokens"].status is CaseStatus.BOTH_FAIL
    assert shown["acceptance adds up"].status is CaseStatus.BOTH_FAIL


def test_a_counter_that_stands_still_under_load_does_not_count_as_shown() -> None:
    frozen = on_page(lambda page: re.sub(r"(prompt_tokens_total{.*}) .*", r"\1 7.0", page))
    shown = cases(PlantedWorld(defects={"speculative": frozen}))
    assert shown["prompt tokens"].status is CaseStatus.FAIL
    assert "stands still at 7" in shown["prompt tokens"].seen


def test_a_counter_that_calls_itself_a_gauge() -> None:
    wrong = on_page(lambda page: page.replace("generation_tokens_total counter", "generation_tokens_total gauge"))  # noqa: E501  # fmt: skip
    shown = cases(PlantedWorld(defects={"speculative": wrong}))
    assert "is a gauge" in shown["output tokens"].seen


def test_counters_that_tell_of_other_tokens_than_the_answers() -> None:
    double = on_page(
        lambda page: re.sub(
            r"(generation_tokens_total{.*}) (.*)",
            lambda m: f"{m[1]} {2 * float(m[2])}",
            page,
        )
    )
    shown = cases(PlantedWorld(defects={"speculative": double}))
    assert shown["tokens agree"].status is CaseStatus.FAIL
    counted, used = re.findall(r"\d+", shown["tokens agree"].seen)
    assert int(counted) == 2 * int(used) > 0


def test_positions_that_do_not_add_up() -> None:
    lost = without('position="0"')
    shown = cases(PlantedWorld(defects={"speculative": lost}))
    assert shown["acceptance adds up"].status is CaseStatus.BOTH_FAIL
    assert "over the positions" in shown["acceptance adds up"].seen


def test_counters_that_go_back_under_load() -> None:
    readings: list[int] = []

    def fall(page: str) -> str:
        readings.append(1)
        return re.sub(r"(prompt_tokens_total{.*}) .*", rf"\1 {1000 - len(readings)}", page)

    shown = cases(PlantedWorld(defects={"speculative": on_page(fall)}))
    assert shown["scraped under load"].status is CaseStatus.FAIL
    assert "vllm:prompt_tokens_total" in shown["scraped under load"].seen


def test_a_page_that_fails_or_is_not_a_page() -> None:
    gone: Override = lambda arm, ask, body, sound: (  # noqa: E731
        refusal(404, "no") if ask.path == "/metrics" else None
    )
    result = judged(PlantedWorld(defects={"speculative": gone}))
    shown = {case.case: case.status for case in result.cases}
    assert shown["page of metrics"] is CaseStatus.FAIL and shown["scraped under load"] is (
        CaseStatus.FAIL
    )
    html = on_page(lambda page: "<html>no metrics here</html>")
    assert cases(PlantedWorld(defects={"speculative": html}))["page of metrics"].status is (
        CaseStatus.FAIL
    )


def test_a_trace_header_that_breaks_a_request() -> None:
    breaks: Override = lambda arm, ask, body, sound: (  # noqa: E731
        refusal(500, "boom") if any(name == "traceparent" for name, _ in ask.headers) else None
    )
    shown = cases(PlantedWorld(defects={"speculative": breaks}))
    assert shown["trace context accepted"].status is CaseStatus.FAIL


def test_logs_are_read_where_there_are_any() -> None:
    world = PlantedWorld()
    world.logs["speculative"] = (
        "Engine 000: Avg prompt throughput: 3.1 tokens/s, Avg generation throughput: 9.5 tokens/s\n"
        "SpecDecoding metrics: Mean acceptance length: 1.72, Accepted throughput: 2.1 tokens/s\n"
    )
    shown = cases(world)
    assert shown["log of throughput"].seen == "Avg generation throughput: 9.5"
    assert shown["log of acceptance"].seen == "Mean acceptance length: 1.72"
    assert "not in the log" in shown["log of stage times"].seen


def test_every_signal_says_how_to_get_it() -> None:
    assert all(signal.obtain and signal.exposed_as for signal in SIGNALS)
    assert len({signal.name for signal in SIGNALS}) == len(SIGNALS)
