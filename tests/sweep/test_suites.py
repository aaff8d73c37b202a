"""Suites in the story of a sweep: what is run, kept, judged, told; with suites made for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestrator.analyse.suites.catalogue import JUDGES
from orchestrator.cli import main
from orchestrator.decide.sweep_result import whole_sweep
from orchestrator.errors import DeploymentError
from orchestrator.records import FailureClass
from orchestrator.report.language import LANGUAGES, Language, Words
from orchestrator.report.markdown import markdown_report
from orchestrator.report.terminal import result_table
from orchestrator.run.suites.catalogue import SUITES, Entry
from orchestrator.run.suites.openai import chat, read
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteRecord, SuiteResult
from orchestrator.run.suites.suite import Bench
from orchestrator.spec.search import PERFORMANCE, SUITE_NAMES
from orchestrator.store import SweepFolder
from orchestrator.sweep import run_sweep, track_again
from tests.sweep.world import Events, RememberingTracker, sweep_of, write_experiment

NAME = "functional"
"""A name that the specification knows; the suite behind it is this file's."""


@dataclass(frozen=True)
class Greeting:
    """Says hello to everybody once."""

    complete: bool = True
    during: Callable[[Bench], None] = lambda bench: None
    name: str = NAME

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"version": 1}

    def run(self, bench: Bench) -> SuiteRecord:
        for subject in bench.subjects.available:
            ask = chat(bench.model(subject), "hello", temperature=0, max_tokens=4)
            bench.put("hello", subject, [ask], parts=["only"])
        self.during(bench)
        bench.look_after("hello")
        return bench.record(self.name, complete=self.complete, extra={"told": [1, None]})


def judge(record: SuiteRecord) -> SuiteResult:
    texts = {asked.subject: read(asked.answer).text for asked in record.asked}
    same = texts["baseline"] == texts["speculative"]
    status = CaseStatus.PASS if same else CaseStatus.DIFFERS
    case = CaseResult("hello", status, "be the same", f"{texts}", reproduce="curl …")
    verdict = "all the same" if same else "1 finding"
    return SuiteResult(NAME, record.pair_key, "x", verdict, same, (case,), {"texts": 3.0})


@pytest.fixture(autouse=True)
def _greeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(monkeypatch, Greeting())
    monkeypatch.setitem(JUDGES, NAME, judge)
    return


def install(monkeypatch: pytest.MonkeyPatch, suite: Greeting) -> None:
    monkeypatch.setitem(SUITES, NAME, Entry(lambda: suite, requests=1, output_tokens=4, subjects=3))


def suites_of(
    tmp_path: Path,
    *,
    suites: tuple[str, ...] = (NAME,),
    simulated: str = "{profile: fast}",
    tracker: RememberingTracker | None = None,
    events: Events | None = None,
) -> Any:
    file = write_experiment(tmp_path, simulated=simulated)
    sweep, _ = sweep_of(
        file, tmp_path / "r", tracker=tracker, on_progress=events or Events(), suites=suites
    )
    return sweep


def test_every_pair_is_asked_once_and_no_trial_is_run(tmp_path: Path) -> None:
    events, tracker = Events(), RememberingTracker()
    finished = run_sweep(suites_of(tmp_path, events=events, tracker=tracker))
    assert finished.result.every == ()
    assert [run.verdict for run in finished.result.suite_runs] == ["all the same"] * 2
    labels = [run.job.label() for run in finished.result.suite_runs]
    assert labels == ["functional · ngram K=2", "functional · ngram K=4"]
    assert events.kinds().count("suite_ended") == 2
    assert {run.tags["kind"] for run in tracker.runs.values()} == {"suite"}


def test_the_record_comes_back_as_it_was(tmp_path: Path) -> None:
    finished = run_sweep(suites_of(tmp_path))
    run = finished.result.suite_runs[0]
    record = SweepFolder(tmp_path / "r" / "story").suite(run.job.id).record()
    assert record is not None
    assert [asked.subject for asked in record.asked] == [
        "baseline", "speculative", "baseline_again",
    ]  # fmt: skip
    assert record.asked[0].ask.headers == (("Content-Type", "application/json"),)
    assert record.asked[0].part == "only"
    assert record.asked[0].answer.status == 200
    assert record.extra == {"told": [1, None]}
    assert [(state.subject, state.healthy) for state in record.health] == [
        ("baseline", True), ("speculative", True),
    ]  # fmt: skip
    assert all(state.rss_bytes and state.kv_cache_usage == 0 for state in record.health)
    assert record.simulated
    assert [name for name, _ in record.engines] == ["simulated"]


def test_run_again_only_reports(tmp_path: Path) -> None:
    run_sweep(suites_of(tmp_path))
    events = Events()
    finished = run_sweep(suites_of(tmp_path, events=events))
    assert events.seen == []
    assert len(finished.result.suite_runs) == 2


def test_what_is_not_complete_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Greeting(complete=False))
    first = run_sweep(suites_of(tmp_path))
    assert first.result.suite_runs[0].verdict == "all the same"  # this judge does not pass it on
    install(monkeypatch, Greeting())
    events = Events()
    run_sweep(suites_of(tmp_path, events=events))
    assert events.kinds().count("suite_started") == 2


def test_trials_of_an_earlier_run_stay_and_are_reported(tmp_path: Path) -> None:
    run_sweep(suites_of(tmp_path, suites=("performance",)))
    finished = run_sweep(suites_of(tmp_path))
    assert len(finished.result.trials) == 4
    assert len(finished.result.suite_runs) == 2
    again = run_sweep(suites_of(tmp_path, suites=("performance",)))
    assert len(again.result.suite_runs) == 2


def test_a_suite_that_fails_is_an_outcome_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def once(bench: Bench) -> None:
        seen.append(bench.pair_key)
        if len(seen) == 1:
            raise KeyError("a defect of the suite")

    install(monkeypatch, Greeting(during=once))
    tracker = RememberingTracker()
    finished = run_sweep(suites_of(tmp_path, tracker=tracker))
    failed, whole = finished.result.suite_runs
    assert failed.failed and failed.result is None and failed.outcome is not None
    assert failed.outcome.failure is FailureClass.INTERNAL
    assert "KeyError" in str(failed.outcome.log_tail)
    assert whole.verdict == "all the same"
    assert [run.status for run in tracker.runs.values()] == ["FAILED", "FINISHED"]
    assert "functional · ngram K=2: failed: internal" in finished.report.markdown.read_text()
    quiet = Events()
    run_sweep(suites_of(tmp_path, events=quiet))
    assert quiet.seen == []
    monkeypatch.undo()


def test_an_engine_that_does_not_start_is_told_with_its_class(tmp_path: Path) -> None:
    simulated = "{profile: fast, speculative: {faults: {start_failure: out_of_memory}}}"
    finished = run_sweep(suites_of(tmp_path, simulated=simulated))
    outcomes = [run.outcome for run in finished.result.suite_runs]
    assert {outcome.failure for outcome in outcomes if outcome} == {FailureClass.OUT_OF_MEMORY}


def test_an_interrupted_suite_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(bench: Bench) -> None:
        raise KeyboardInterrupt

    install(monkeypatch, Greeting(during=stop))
    with pytest.raises(KeyboardInterrupt):
        run_sweep(suites_of(tmp_path))
    install(monkeypatch, Greeting())
    finished = run_sweep(suites_of(tmp_path))
    assert [run.verdict for run in finished.result.suite_runs] == ["all the same"] * 2


def test_a_dead_engine_is_started_again_and_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(bench: Bench) -> None:
        ask = chat(bench.model("speculative"), "hello", prompt_logprobs=1)
        bench.put("killing", "speculative", [ask])
        states = bench.look_after("killing")
        assert [(s.healthy, s.restarted) for s in states] == [(True, False), (False, True)]
        bench.put("after", "speculative", [chat(bench.model("speculative"), "hello")])
        assert bench.asked[-1].answer.status == 200

    install(monkeypatch, Greeting(during=kill))
    simulated = "{profile: fast, speculative: {faults: {defects: [crashes_on_prompt_logprobs]}}}"
    finished = run_sweep(suites_of(tmp_path, simulated=simulated))
    assert not any(run.failed for run in finished.result.suite_runs)


def test_attached_servers_are_not_restarted() -> None:
    from orchestrator.adapters.simulated.in_process import (
        SimulatedDeployer,
        SimulatedTelemetry,
    )
    from orchestrator.adapters.simulated.world import SimulatedWorld
    from orchestrator.plan.deployment import DeploymentPair
    from orchestrator.run.pool import Pool
    from orchestrator.run.suites.subjects import LeasedSubjects
    from tests.adapters.simulated.build import deployment

    world = SimulatedWorld()
    attached = {"attached": "http://somewhere"}
    pair = DeploymentPair(deployment(engine=attached), deployment(2, engine=attached))
    subjects = LeasedSubjects(
        Pool(SimulatedDeployer(world)), pair, None, SimulatedTelemetry(world), holder="h"
    )
    assert subjects.available == ("baseline", "speculative")
    assert "not started again" in subjects.notes[0]
    with pytest.raises(DeploymentError, match="cannot be started from here"):
        subjects.restart("speculative")


def test_findings_are_in_the_report_and_the_tracking(tmp_path: Path) -> None:
    simulated = (
        "{profile: fast, speculative: {faults: {defects: [ignores_system, greedy_differs]}}}"
    )
    tracker = RememberingTracker()
    sweep = suites_of(tmp_path, simulated=simulated, tracker=tracker)

    def differs(record: SuiteRecord) -> SuiteResult:
        found = judge(record)
        case = replace(found.cases[0], status=CaseStatus.DIFFERS)
        return replace(found, cases=(case,), verdict="1 finding", ok=False)

    JUDGES[NAME] = differs
    finished = run_sweep(sweep)
    text = finished.report.markdown.read_text()
    assert "## Suite: functional" in text
    assert "| case | ngram K=2 | ngram K=4 |" in text
    assert "| hello | **differs** | **differs** |" in text
    assert "It must: be the same." in text and "curl …" in text
    (run, _) = tracker.runs.values()
    assert (run.tags["verdict"], run.tags["ok"]) == ("1 finding", "false")
    assert run.metrics["cases/differs"] == run.metrics["findings"] == 1
    assert run.metrics["texts"] == 3
    own = run.artifacts["suite"]
    assert {path.name for path in own.iterdir()} == {
        "suite.json", "asked.parquet", "record.json", "outcome.json", "result.json",
    }  # fmt: skip
    rebuilt = RememberingTracker()
    track_again(SweepFolder(tmp_path / "r" / "story"), rebuilt)
    assert {i: dict(r.metrics) for i, r in rebuilt.runs.items()} == {
        i: dict(r.metrics) for i, r in tracker.runs.items()
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_report_of_suites_alone_speaks_of_no_speedup(tmp_path: Path, language: Language) -> None:
    words = Words(language)
    result = run_sweep(suites_of(tmp_path)).result
    text = markdown_report(result, words)
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[0] == f"## {words('suite.section', name=NAME)}"
    assert "| hello | " in text and "simulated" in text
    of_trials = ("section.verdicts", "section.every_speedup", "section.both_arms")
    assert not {f"## {words(name)}" for name in of_trials} & set(headings)
    unsaid = ("report.no_cell_faster", "report.control_missing", "report.engine_unknown")
    assert not [words(name) for name in unsaid if words(name) in text]
    tables = [line for line in text.splitlines() if line.startswith("|---")]
    assert len(tables) == 1

    console = Console(record=True, width=100)
    console.print(result_table(result))
    shown = console.export_text()
    assert "all the same" in shown
    assert "verdict" not in shown and "A/A control" not in shown


def test_the_flag_stands_for_the_files_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_experiment(tmp_path)
    assert main(["plan", str(file), "--suites", NAME]) == 0
    told = capsys.readouterr().out
    assert "functional: 2 x about" in told
    assert "Only suites are asked for: no trial is run." in told
    assert main(["plan", str(file)]) == 0
    assert "functional" not in capsys.readouterr().out
    assert main(["plan", str(file), "--suites", "functoinal"]) == 2
    assert "did you mean 'functional'?" in capsys.readouterr().err


def test_a_whole_sweep_by_its_command(tmp_path: Path) -> None:
    file = write_experiment(tmp_path)
    flags = ["--results", str(tmp_path / "r"), "--suites", NAME, "--offline"]
    assert main(["sweep", str(file), *flags]) == 0
    result = whole_sweep(SweepFolder(tmp_path / "r" / "story"))
    assert [found.verdict for found in result.suites] == ["all the same"] * 2
    assert main(["report", "story", "--results", str(tmp_path / "r")]) == 0


def test_every_suite_that_is_there_is_judged_and_can_be_asked_for() -> None:
    named = set(SUITE_NAMES.available) - {PERFORMANCE}
    assert set(SUITES) == set(JUDGES) == named
