"""A comparison for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.decide.compare import Comparison
from orchestrator.report.comparison_rows import (
    ComparisonRow,
    cell_rows,
    fact_rows,
    headline,
    remarks,
)

FACT_HEAD = ("what differs", "before", "after")
_SHORT = {"speculative/": "spec ", "baseline/": "base ", "output_tok_per_s": "tok/s"}
CELL_HEAD = ("cell", "figure", "before", "after", "after / before", "how", "verdict")


def comparison_table(found: Comparison, *, all_figures: bool = False) -> RenderableType:
    """Environment first, then the cells, then what to know before believing it."""
    parts: list[RenderableType] = [Text(f"{found.before.name} -> {found.after.name}\n")]
    facts = fact_rows(found)
    if facts:
        parts.append(_table(FACT_HEAD, facts))
        parts.append(Text(""))
    shown = cell_rows(found, all_figures=all_figures)
    for cell in dict.fromkeys(row.cell for row in shown):
        parts += [Text(cell, style="bold"), _cell([row for row in shown if row.cell == cell])]
        parts.append(Text(""))
    parts += [Text(text) for text in remarks(found)]
    parts.append(Text(f"\n{headline(found)}", style="bold red" if found.regressions else "bold"))
    return Group(*parts)


def comparison_markdown(found: Comparison) -> str:
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Comparison) -> Iterator[str]:
    yield f"# {found.before.name} → {found.after.name}"
    yield from ("", f"**{headline(found)}**", "", "## What differs", "")
    yield from _markdown_table(FACT_HEAD, fact_rows(found))
    yield from ("", "## Cells", "")
    yield from _markdown_table(CELL_HEAD, [cells_of(r) for r in cell_rows(found, all_figures=True)])
    yield from ("", "## To know before believing it", "")
    yield from (f"- {text}" for text in remarks(found))


def cells_of(row: ComparisonRow) -> tuple[str, ...]:
    """The row's texts under `CELL_HEAD`."""
    return (row.cell, row.figure, row.before, row.after, row.ratio, row.paired, row.change)


def _markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in body:
        yield "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for line in body:
        table.add_row(*line)
    return table


def _cell(rows: Sequence[ComparisonRow]) -> Table:
    """A cell's figures; the columns are as narrow as 80 characters ask for."""
    table = Table(box=None, pad_edge=False)
    for name in CELL_HEAD[1:]:
        table.add_column(name, overflow="fold", no_wrap=name in ("figure", "after / before"))
    for row in rows:
        figure, *rest, _ = cells_of(row)[1:]
        for long, short in _SHORT.items():
            figure = figure.replace(long, short)
        table.add_row(figure, *rest, Text(row.change, style=_style(row)))
    return table


def _style(row: ComparisonRow) -> str:
    if row.regression:
        return "bold red"
    return {"better": "green", "worse": "red", "no practical difference": "cyan"}.get(
        row.change, "yellow"
    )
