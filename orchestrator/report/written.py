"""Where the report of a sweep goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.decision_file import write_decision
from orchestrator.report.language import Words
from orchestrator.report.markdown import markdown_report
from orchestrator.report.page import html_report
from orchestrator.report.row import ENGLISH
from orchestrator.store import SweepFolder
from orchestrator.store.atomic import write_atomically


@dataclass(frozen=True)
class Written:
    """The files of a report."""

    page: Path
    markdown: Path

    @property
    def files(self) -> tuple[Path, Path]:
        return self.page, self.markdown


def written_to(folder: Path, words: Words = ENGLISH) -> Written:
    """Where the report of the sweep in `folder` is, or will be."""
    language = "" if words.language == "en" else f".{words.language}"
    return Written(folder / f"report{language}.html", folder / f"report{language}.md")


def write_report(result: SweepResult, folder: Path, words: Words = ENGLISH) -> Written:
    """Write `report.html` and `report.md` (Chinese: `report.zh.html`, `report.zh.md`) into the
    sweep's folder, beside the records that they link to;
    the decision, with what there is to deploy, beside them.

    Raises: StoreError.
    """
    written = written_to(folder, words)
    for path, text in zip(
        written.files, (html_report(result, words), markdown_report(result, words)), strict=True
    ):
        _write(path, text)
    for suite in result.suite_runs:
        if suite.result is not None:
            SweepFolder(folder).suite(suite.job.id).save_result(suite.result)
    write_decision(result, folder)
    return written


def _write(path: Path, text: str) -> None:
    # A server may send any text: lone surrogates are no valid UTF-8.
    data = text.encode("utf-8", "replace")
    write_atomically(path, lambda temporary: temporary.write_bytes(data))
