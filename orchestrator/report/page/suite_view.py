"""What the suites found, case by case."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from orchestrator.decide.suite_results import JudgedSuite
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.suite_text import status_text


@dataclass(frozen=True)
class CaseView:
    case: str
    status_text: str
    must: str
    seen: str
    reproduce: str | None
    finding: bool


@dataclass(frozen=True)
class SuiteView:
    """One suite on one deployment pair."""

    suite: str
    label: str
    folder: str
    """Of its records, relative to the page."""
    verdict: str
    state: str
    """`ok`, `bad` or `open`."""
    state_text: str
    counts: str
    metrics: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    cases: tuple[CaseView, ...]
    """Findings first."""
    simulated: bool


def suite_views(result: SweepResult, words: Words) -> list[SuiteView]:
    return [_view(suite, words) for suite in result.suite_runs]


def _view(run: JudgedSuite, words: Words) -> SuiteView:
    found, name = run.result, run.job.suite
    cases = () if found is None else found.cases
    findings = set() if found is None else {id(case) for case in found.findings}
    counts = Counter(status_text(case.status, words) for case in cases)
    views = [
        CaseView(
            case=case.case,
            status_text=status_text(case.status, words),
            must=words.sentence(case.must),
            seen=words.sentence(case.seen),
            reproduce=case.reproduce,
            finding=id(case) in findings,
        )
        for case in cases
    ]
    notes = () if found is None else found.notes
    if run.failed and run.outcome is not None:
        failure = words.sentence(str(run.outcome.failure))
        notes = (f"{failure}: {words.sentence(str(run.outcome.cause))}", *notes)
    state = _state(run)
    return SuiteView(
        suite=words(f"suite.{name}") if words.has(f"suite.{name}") else name,
        label=run.job.label(),
        folder=f"suites/{run.job.id}/",
        verdict=words.sentence(run.verdict),
        state=state,
        state_text=words(f"suite_state.{state}"),
        counts=" · ".join(f"{text} {count}" for text, count in counts.items()),
        metrics=()
        if found is None
        else tuple((key, f"{value:.4g}") for key, value in found.metrics.items()),
        notes=tuple(words.sentence(note) for note in notes),
        cases=tuple(sorted(views, key=lambda case: not case.finding)),
        simulated=found is not None and found.simulated,
    )


def _state(run: JudgedSuite) -> str:
    """Not measured is not passed: what did not run to its end is open, whatever it found so far."""
    if run.failed:
        return "bad"
    if run.result is None or run.result.ok is None:
        return "open"
    if not run.result.ok:
        return "bad"
    return "ok" if run.result.complete else "open"
