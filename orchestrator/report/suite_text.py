"""What the suites found, in words: a matrix of cases by deployments, and every finding.

What a case must do and what was seen are the suite's own words: in Chinese as far as
`catalogue/zh/suites.toml` knows them, else quoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.decide.suite_results import JudgedSuite
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteResult

_FOOTNOTES = (CaseStatus.BOTH_FAIL, CaseStatus.UNSUPPORTED)
_IN_FIGURES = ("losslessness", "quality")
"""Suites whose every case is a figure to be read, whatever its status."""
_NAMED = 5


def suite_sentences(result: SweepResult, words: Words = ENGLISH) -> list[str]:
    """One line a suite and pair, for the terminal."""
    return [_sentence(suite, words) for suite in result.suite_runs]


def suite_sections(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """A section per suite, in Markdown."""
    for name, suites in result.suites_named().items():
        yield f"## {words('suite.section', name=name)}"
        yield ""
        for suite in suites:
            yield f"- {_sentence(suite, words)} [{suite.job.id}](suites/{suite.job.id}/)"
        yield ""
        yield from _matrix(suites, words)
        yield from _details(suites, words)


def status_text(status: CaseStatus, words: Words = ENGLISH) -> str:
    return words(f"suite_status.{status.name.lower()}")


def _sentence(suite: JudgedSuite, words: Words) -> str:
    label = suite.job.label()
    if suite.failed and suite.outcome is not None:
        cause = str(suite.outcome.cause)
        return words("suite.failed", label=label, failure=str(suite.outcome.failure), cause=cause)
    if suite.result is None or not suite.result.findings:
        return words("suite.ended", label=label, verdict=words.sentence(suite.verdict))
    found = [f"{c.case} ({status_text(c.status, words)})" for c in suite.result.findings]
    named = words("list.separator").join(found[:_NAMED])
    if len(found) > _NAMED:
        named = words("suite.more", named=named, total=len(found))
    return words("suite.found", label=label, verdict=words.sentence(suite.verdict), named=named)


def _matrix(suites: Sequence[JudgedSuite], words: Words) -> Iterator[str]:
    ran = [suite for suite in suites if suite.result is not None]
    names = dict.fromkeys(c.case for s in ran if s.result is not None for c in s.result.cases)
    if not names:
        return
    labels = [suite.job.pair.speculative.label() for suite in ran]
    yield f"| {words('suite.case')} | " + " | ".join(labels) + " |"
    yield "|" + "---|" * (len(ran) + 1)
    for name in names:
        cells = [_cell(suite, name, words) for suite in ran]
        yield f"| {_escaped(name)} | " + " | ".join(cells) + " |"
    yield ""


def _cell(suite: JudgedSuite, name: str, words: Words) -> str:
    result = suite.result
    cases = () if result is None else result.cases
    found = next((case for case in cases if case.case == name), None)
    if found is None or result is None:
        return "–"
    text = status_text(found.status, words)
    return f"**{text}**" if found in result.findings else text


def _details(suites: Sequence[JudgedSuite], words: Words) -> Iterator[str]:
    for suite in suites:
        result = suite.result
        if result is None:
            continue
        label = suite.job.pair.speculative.label()
        for case in result.findings:
            yield from _finding(label, case, words)
        others = [case for case in result.cases if _shown(result, case)]
        for case in others:
            status = status_text(case.status, words)
            yield f"- {label}, {case.case}: {status}: {_one_line(words.sentence(case.seen))}"
        for note in result.notes:
            yield f"- {label}: {_one_line(words.sentence(note))}"
        if result.findings or others or result.notes:
            yield ""


def _shown(result: SuiteResult, case: CaseResult) -> bool:
    in_figures = result.suite in _IN_FIGURES and case not in result.findings
    return in_figures or case.status in _FOOTNOTES


def _finding(label: str, case: CaseResult, words: Words) -> Iterator[str]:
    who = f" ({', '.join(case.crashed)})" if case.crashed else ""
    status = status_text(case.status, words)
    yield f"- **{label}, {case.case}: {status}{who}**: {_one_line(words.sentence(case.seen))}"
    yield f"  {words('suite.must', must=words.sentence(case.must))}"
    if case.reproduce:
        yield ""
        yield "  ```sh"
        yield from (f"  {line}" for line in case.reproduce.splitlines())
        yield "  ```"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
