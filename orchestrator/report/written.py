"""Where the report of a sweep goes."""

from __future__ import annotations

from pathlib import Path

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.decision_file import write_decision
from orchestrator.report.language import Words
from orchestrator.report.markdown import markdown_report
from orchestrator.report.row import ENGLISH
from orchestrator.store import SweepFolder
from orchestrator.store.atomic import write_atomically


def write_report(result: SweepResult, folder: Path, words: Words = ENGLISH) -> Path:
    """Write `report.md` (Chinese: `report.zh.md`) into the sweep's folder and return its path;
    the decision, with what there is to deploy, beside it.

    Raises: StoreError.
    """
    language = "" if words.language == "en" else f".{words.language}"
    path = folder / f"report{language}.md"
    text = markdown_report(result, words)
    for suite in result.suite_runs:
        if suite.result is not None:
            SweepFolder(folder).suite(suite.job.id).save_result(suite.result)
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    write_decision(result, folder)
    return path
