"""A soak over its hours, both arms: the figures that decide, and every one that was found bad."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.decide.suite_results import JudgedSuite
from orchestrator.decide.suites import of_suite
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.page.panel import Figure, Panel, columns_of, figure_of
from orchestrator.report.suite_text import status_text
from orchestrator.run.suites.record import CaseResult, SuiteResult

SHOWN = (
    "trend: output_tok_per_s",
    "trend: tpot_p50_s",
    "trend: acceptance_length",
    "growth: process_rss_bytes",
)
FINDINGS_MOST = 6


def soak_figure(result: SweepResult, words: Words) -> Figure:
    """Absent where no soak was run."""
    panels = [panel for suite in of_suite(result, "soak") for panel in _panels(suite, words)]
    return figure_of("soak", "soak", panels, words, absent=words("plot.soak_absent"))


def _panels(suite: SuiteResult, words: Words) -> Iterator[Panel]:
    bad = [case for case in suite.findings if "series" in case.evidence][:FINDINGS_MOST]
    shown = [case for case in suite.cases if case.case in SHOWN and case not in bad]
    for case in [*bad, *shown]:
        points = list(_points(case, words))
        if not points:
            continue
        title = f"{suite.label} · {case.case} · {status_text(case.status, words)}"
        yield Panel(
            kind="soak",
            title=title,
            summary=words("plot.soak_summary", place=title),
            columns=columns_of(words, "hours", "arm", "value"),
            points=points,
            options={
                "x": words("axis.hours"),
                "y": case.case.partition(": ")[2],
                "arms": [words("script.baseline"), words("script.speculative")],
            },
        )


def _points(case: CaseResult, words: Words) -> Iterator[dict[str, object]]:
    for arm, series in case.evidence["series"].items():
        for hours, value in series:
            yield {"hours": hours, "value": value, "arm": words(f"script.{arm}")}


def has_soak(runs: tuple[JudgedSuite, ...]) -> bool:
    return any(run.job.suite == "soak" for run in runs)
