"""A comparison as one HTML file that needs nothing from the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from orchestrator.decide.compare import Comparison
from orchestrator.report.comparison_rows import cell_rows, fact_rows, headline, remarks
from orchestrator.report.comparison_text import CELL_HEAD, FACT_HEAD, cells_of

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 75rem;
  padding: 0 1rem; color: #1a1a1a; background: #fff; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #bbb;
  vertical-align: top; overflow-wrap: anywhere; min-width: 4.5rem; }
th { border-bottom-width: 2px; }
.verdict { font-weight: 600; font-size: 1.15rem; }
tr.regression td { background: #ffe3d6; }
tr.regression td:last-child::before { content: "\\25bc "; }
tr.better td:last-child::before { content: "\\25b2 "; }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #16181c; }
  th, td { border-color: #555; }
  tr.regression td { background: #5a2410; }
}
@media print { body { margin: 0; max-width: none; } }
"""


def comparison_html(found: Comparison) -> str:
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Comparison) -> Iterator[str]:
    title = escape(f"{found.before.name} → {found.after.name}")
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title><style>{_STYLE}</style></head><body><main>"
    yield f"<h1>{title}</h1>"
    yield f'<p class="verdict">{escape(headline(found))}</p>'
    yield "<h2>What differs</h2>"
    yield from _table(FACT_HEAD, [(line, "") for line in fact_rows(found)], "Differences")
    yield "<h2>Cells</h2>"
    rows = [
        (cells_of(row), "regression" if row.regression else row.change)
        for row in cell_rows(found, all_figures=True)
    ]
    yield from _table(CELL_HEAD, rows, "Figures of every cell, before and after")
    yield "<h2>To know before believing it</h2><ul>"
    yield from (f"<li>{escape(text)}</li>" for text in remarks(found))
    yield "</ul></main></body></html>"


def _table(
    head: Sequence[str], body: Sequence[tuple[Sequence[str], str]], caption: str
) -> Iterator[str]:
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    yield f"<thead><tr>{cells}</tr></thead><tbody>"
    for line, kind in body:
        mark = f' class="{escape(kind.split(" ")[0])}"' if kind else ""
        yield f"<tr{mark}>" + "".join(f"<td>{escape(text)}</td>" for text in line) + "</tr>"
    yield "</tbody></table></div>"
