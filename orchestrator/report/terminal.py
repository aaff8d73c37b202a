"""The table at the end of a sweep."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.decide.ladders import ladders
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.efficiency_text import efficiency_sentence
from orchestrator.report.ladder_text import break_even_sentence, ladder_unit
from orchestrator.report.row import (
    ENGLISH,
    WITHHELD,
    Row,
    load_heading,
    rows,
    withheld_sentence,
)
from orchestrator.report.search_text import reused_sentences, search_sentences
from orchestrator.report.suite_text import suite_sentences
from orchestrator.report.words import control_sentence, preconditions

_RUNGS_TO_TELL = 3
"""Two loads are a grid, not a ladder: that they do not bracket a break-even goes without saying."""
_COLOUR = {"faster": "green", "slower": "red", "no practical difference": "cyan"}


def result_table(result: SweepResult) -> RenderableType:
    """Every cell with its speedup, acceptance length and verdict; the control's meaning below.
    Where only suites were run, what they found."""
    if result.only_suites:
        said = [*suite_sentences(result), preconditions(result)]
        return Group(Text(_title(result)), *(Text(sentence) for sentence in said))
    table = Table(
        title=_title(result), title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("method", overflow="fold", min_width=9)
    table.add_column("workload", overflow="fold")
    table.add_column(load_heading(result).replace(" ", "\n"), justify="right", no_wrap=True)
    table.add_column("T", justify="right")
    table.add_column(f"{_metric(result)}\n[interval]", justify="right", no_wrap=True)
    table.add_column("AL", justify="right")
    table.add_column("pairs\n(to go)", justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold", min_width=12)
    shown = rows(result)
    for row in shown:
        table.add_row(
            row.method
            if row.speculation_length == "–"
            else f"{row.method} K={row.speculation_length}",
            row.workload,
            row.load,
            row.temperature,
            row.speedup,
            row.acceptance_length,
            _pairs(row),
            Text(row.verdict_alone + WITHHELD * row.withheld, style=_style(row)),
        )
    even = [
        f"{ladder.label}: {break_even_sentence(ladder.break_even, ladder_unit(ladder))}"
        for ladder in ladders(result.trials)
        if ladder.break_even.crossings or len(ladder.rungs) >= _RUNGS_TO_TELL
    ]
    below = [
        withheld_sentence(shown),
        *failures(result),
        *even,
        *reused_sentences(result),
        *search_sentences(result),
        *suite_sentences(result),
        control_sentence(result),
        preconditions(result),
        efficiency_sentence(result.efficiency),
    ]
    return Group(table, *(Text(sentence) for sentence in below if sentence))


def _pairs(row: Row) -> str:
    """`8/10 (+48)`: 8 of 10 pairs count, 48 more would decide."""
    to_go = f" (+{row.further_pairs})" if row.further_pairs else ""
    return row.pairs.replace(" of ", "/") + to_go


def failures(result: SweepResult) -> list[str]:
    """One line for every distinct cause, and how many trials it ended."""
    causes = Counter(
        (str(trial.outcome.failure), str(trial.outcome.cause))
        for trial in result.every
        if trial.failed and trial.outcome is not None
    )
    return [
        ENGLISH("report.failed_causes", count=count, failure=failure, cause=cause)
        for (failure, cause), count in causes.items()
    ]


def _title(result: SweepResult) -> str:
    return f"{result.name}" + (f" ({ENGLISH('report.simulated')})" if result.simulated else "")


def _metric(result: SweepResult) -> str:
    for trial in result.every:
        return trial.trial.protocol.metric
    return "speedup"


def _style(row: Row) -> str:
    if row.verdict.startswith("failed"):
        return "bold red"
    return _COLOUR.get(row.verdict, "yellow" if row.verdict.startswith("cannot tell") else "")
