"""A comparison as rows of text, the same for terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.analyse.pairs import SPEEDUPS
from orchestrator.analyse.rung import Estimate
from orchestrator.decide.compare import CellChange, Change, Comparison, FigureChange

_SHOWN = {"output_tok_per_s": ("tok/s", 1.0, 1), "acceptance_length": ("AL", 1.0, 2)}


@dataclass(frozen=True)
class ComparisonRow:
    """One figure of one cell."""

    cell: str
    figure: str
    before: str
    after: str
    ratio: str
    paired: str
    change: str
    regression: bool


def headline(found: Comparison) -> str:
    """What a reader who reads one sentence must read."""
    if not found.compared:
        return "Nothing can be compared: no cell was measured on both sides."
    count = len(found.regressions)
    cells = len(found.cells)
    if count:
        return f"{count} regressions beyond the margin of {found.margin:.0%}, in {cells} cells."
    better = sum(cell.improved for cell in found.cells)
    untold = sum(
        any(f.decides and f.change is Change.CANNOT_TELL for f in cell.figures)
        for cell in found.cells
    )
    return (
        f"No regression beyond the margin of {found.margin:.0%} was found in {cells} cells; "
        f"{better} are better, in {untold} something cannot be told."
    )


def fact_rows(found: Comparison) -> list[tuple[str, str, str]]:
    """(fact, before, after) of everything that differs around the engines."""
    return [(fact.name, _fact(fact.before), _fact(fact.after)) for fact in found.facts]


def cell_rows(found: Comparison, *, all_figures: bool = False) -> list[ComparisonRow]:
    """Deciding figures of every cell, and others that changed; with `all_figures` every one."""
    return [row for cell in found.cells for row in _rows(cell, all_figures)]


def _rows(cell: CellChange, all_figures: bool) -> Iterator[ComparisonRow]:
    if cell.now_fails:
        failure = cell.after.failure
        yield ComparisonRow(
            cell.label, "outcome", "measured", f"failed: {failure}", "–", "–", "now fails", True
        )
    for figure in cell.figures:
        changed = figure.change in (Change.BETTER, Change.WORSE)
        if all_figures or figure.decides or changed:
            yield _row(cell, figure)


def _row(cell: CellChange, figure: FigureChange) -> ComparisonRow:
    note = " (not among all cells)" if figure.corrected else ""
    return ComparisonRow(
        cell=cell.label,
        figure=figure.name,
        before=_value(figure.name, figure.before),
        after=_value(figure.name, figure.after),
        ratio=f"x{figure.ratio.value:.3f} [{figure.ratio.low:.3f}, {figure.ratio.high:.3f}]",
        paired=f"{figure.paired} pairs" if figure.paired else "unpaired",
        change=f"{figure.change}{note}",
        regression=figure.decides and figure.change is Change.WORSE,
    )


def _value(name: str, estimate: Estimate) -> str:
    if name in SPEEDUPS:
        return f"{estimate.value:.2f}x"
    unit, scale, digits = _SHOWN.get(name.split("/")[-1], ("ms", 1e3, 1))
    return f"{estimate.value * scale:.{digits}f} {unit}"


def _fact(value: object) -> str:
    return "–" if value is None else str(value)


def remarks(found: Comparison) -> list[str]:
    """What a reader should know before believing it."""
    texts = []
    if found.before.simulated or found.after.simulated:
        texts.append("SIMULATED: at least one side was not measured on a device.")
    if any(not cell.same_prompts for cell in found.cells):
        texts.append("Some cells asked different prompts: those are compared as independent.")
    if not found.facts:
        texts.append("No difference is recorded between the two environments.")
    if found.only_before:
        texts.append(f"Only in {found.before.name}: {'; '.join(found.only_before)}.")
    if found.only_after:
        texts.append(f"Only in {found.after.name}: {'; '.join(found.only_after)}.")
    texts += [
        f"Suite {now.suite} ({now.label}): {then.verdict} -> {now.verdict}."
        for then, now in found.suites
    ]
    texts.append(
        "Paired: blocks with the same prompts, ratio taken block by block. The two sides were "
        "measured at different times, so a change of the machine shows in both arms; speedups are "
        "ratios within each side and do not carry it. Figures that decide (the headline speedup "
        "and the speculative arm's own figure behind it) are corrected over all cells "
        f"(Benjamini-Hochberg); {found.confidence:.0%} intervals."
    )
    return texts
