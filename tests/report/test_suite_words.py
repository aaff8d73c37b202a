"""What suites say is said in Chinese as well: what must hold, what was seen, verdicts and notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.analyse.suites.boundary import MUST, judge_boundary
from orchestrator.analyse.suites.losslessness import judge_losslessness
from orchestrator.analyse.suites.quality import judge_quality
from orchestrator.report.language import Words
from orchestrator.run.suites.boundary import BoundarySuite
from orchestrator.run.suites.losslessness import GreedySize, LosslessnessSuite
from orchestrator.run.suites.quality import QualitySize, QualitySuite
from orchestrator.run.suites.record import SuiteResult
from tests.report.test_chinese import english_sentences
from tests.run.suites.planted_world import PlantedWorld, refusal
from tests.run.suites.sampling_server import SamplingServer
from tests.run.suites.test_functional import judged
from tests.run.suites.text_server import spoilt
from tests.run.suites.toy_subjects import bench

ZH = Words("zh")


@pytest.mark.parametrize("must", MUST.values())
def test_what_a_case_must_do_has_its_words(must: str) -> None:
    assert re.search(r"[\u4e00-\u9fff]", ZH.sentence(must)), must


def functional(tmp_path: Path) -> SuiteResult:
    planted = "greedy_differs", "ignores_seed", "refuses_min_p", "crashes_on_prompt_logprobs"
    return judged(tmp_path, *planted)


def boundary(tmp_path: Path) -> SuiteResult:
    world = PlantedWorld()
    world.defects["speculative"] = lambda arm, ask, body, sound: (
        refusal(500, "boom") if body.get("temperature") == 2 else None
    )
    return judge_boundary(BoundarySuite(disconnects=30).run(world.bench()))


def losslessness(tmp_path: Path) -> SuiteResult:
    suite = LosslessnessSuite((), GreedySize(20, 8, 8, tokens=12))
    return judge_losslessness(suite.run(bench(SamplingServer(defect="greedy accepts too much"))))


def quality(tmp_path: Path) -> SuiteResult:
    suite = QualitySuite((0.0,), QualitySize(prompts=20, tasks=0))
    return judge_quality(suite.run(bench(spoilt(longer=True), embeds=False)))


def said(result: SuiteResult) -> Iterator[str]:
    yield result.verdict
    yield from result.notes
    for case in result.cases:
        yield from (case.must, case.seen)


@pytest.mark.parametrize("suite", [functional, boundary, losslessness, quality])
def test_no_english_sentence_is_left(suite: object, tmp_path: Path) -> None:
    """But for what servers and models said, which is quoted."""
    quoted = re.compile(
        r"'[^']*'|\"[^\"]*\"|\((?:400|500|HTTP)[^)]*\)|(?:HTTP \d+|reset): [^；]*|pip install .*"
    )
    left = {
        text: english
        for text in said(suite(tmp_path))  # type: ignore[operator]
        if (english := english_sentences(quoted.sub("", ZH.sentence(text))))
    }
    assert left == {}
