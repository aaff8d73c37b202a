"""What the suites found, in words: a matrix of cases by deployments, and every finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.decide.suite_results import JudgedSuite
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.run.suites.record import CaseResult, CaseStatus

_SHOWN = {
    CaseStatus.PASS: "pass",
    CaseStatus.FAIL: "**fail**",
    CaseStatus.BOTH_FAIL: "fail in both",
    CaseStatus.UNSUPPORTED: "unsupported",
    CaseStatus.REFUSED: "**unsupported with speculation**",
    CaseStatus.DIFFERS: "**differs**",
    CaseStatus.CRASHED: "**crashed**",
    CaseStatus.NOT_RUN: "not run",
}
_FOOTNOTES = (CaseStatus.BOTH_FAIL, CaseStatus.UNSUPPORTED)


def suite_sentences(result: SweepResult) -> list[str]:
    """One line a suite and pair, for the terminal."""
    return [_sentence(suite) for suite in result.suite_runs]


def suite_sections(result: SweepResult) -> Iterator[str]:
    """A section per suite, in Markdown."""
    for name, suites in result.suites_named().items():
        yield f"## Suite: {name}"
        yield ""
        for suite in suites:
            yield f"- {_sentence(suite)} [{suite.job.id}](suites/{suite.job.id}/)"
        yield ""
        yield from _matrix(suites)
        yield from _details(suites)


def _sentence(suite: JudgedSuite) -> str:
    text = f"{suite.job.label()}: {suite.verdict}"
    if suite.failed and suite.outcome is not None:
        return f"{text}: {suite.outcome.failure}: {suite.outcome.cause}"
    if suite.result is not None and suite.result.findings:
        named = [f"{case.case} ({case.status})" for case in suite.result.findings]
        more = f", … {len(named)} in all" if len(named) > 5 else ""
        return f"{text}: {', '.join(named[:5])}{more}"
    return text


def _matrix(suites: Sequence[JudgedSuite]) -> Iterator[str]:
    ran = [suite for suite in suites if suite.result is not None]
    names = dict.fromkeys(c.case for s in ran if s.result is not None for c in s.result.cases)
    if not names:
        return
    yield "| case | " + " | ".join(s.job.pair.speculative.label() for s in ran) + " |"
    yield "|" + "---|" * (len(ran) + 1)
    for name in names:
        cells = [_cell(suite, name) for suite in ran]
        yield f"| {_escaped(name)} | " + " | ".join(cells) + " |"
    yield ""


def _cell(suite: JudgedSuite, name: str) -> str:
    cases = () if suite.result is None else suite.result.cases
    found = next((case for case in cases if case.case == name), None)
    return "–" if found is None else _SHOWN[found.status]


def _details(suites: Sequence[JudgedSuite]) -> Iterator[str]:
    for suite in suites:
        result = suite.result
        if result is None:
            continue
        label = suite.job.pair.speculative.label()
        for case in result.findings:
            yield from _finding(label, case)
        others = [case for case in result.cases if case.status in _FOOTNOTES]
        for case in others:
            yield f"- {label}, {case.case}: {case.status}: {_one_line(case.seen)}"
        for note in result.notes:
            yield f"- {label}: {_one_line(note)}"
        if result.findings or others or result.notes:
            yield ""


def _finding(label: str, case: CaseResult) -> Iterator[str]:
    who = f" ({', '.join(case.crashed)})" if case.crashed else ""
    yield f"- **{label}, {case.case}: {case.status}{who}**: {_one_line(case.seen)}"
    yield f"  It must: {case.must}."
    if case.reproduce:
        yield ""
        yield "  ```sh"
        yield from (f"  {line}" for line in case.reproduce.splitlines())
        yield "  ```"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
