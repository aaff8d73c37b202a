"""A suite of figures is shown with every figure, not only its findings."""

from types import SimpleNamespace
from typing import cast

from orchestrator.analyse.suites.losslessness import judge_losslessness
from orchestrator.decide.suite_results import JudgedSuite
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.suite_text import suite_sections
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.losslessness import GreedySize, LosslessnessSuite
from tests.run.suites.sampling_server import SamplingServer
from tests.run.suites.toy_subjects import PAIR, bench

SUITE = LosslessnessSuite((), GreedySize(20, 4, 4, tokens=8))


def shown(defect: str) -> str:
    record = SUITE.run(bench(SamplingServer(defect=defect)))
    job = SuiteJob("losslessness", PAIR)
    judged = JudgedSuite(job, None, judge_losslessness(record))
    sweep = SimpleNamespace(suites_named=lambda: {"losslessness": [judged]})
    return "\n".join(suite_sections(cast(SweepResult, sweep)))


def test_the_floors_stand_beside_a_lossless_arm() -> None:
    text = shown("none")
    assert "100.0% of 28 prompts equal" in text
    assert "baseline relaunched: pass: 100.0% of its prompts equal" in text
    assert "baseline in a batch: pass: 100.0% of its prompts equal" in text


def test_an_offending_prompt_stands_with_its_margin_and_its_command() -> None:
    text = shown("greedy accepts too much")
    assert "**fail**" in text and "nats below the most probable one" in text
    assert 'for URL in "$BASELINE" "$SPECULATIVE"; do curl' in text
