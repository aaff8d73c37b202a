"""AL* over speculation length and batch size, and what lies between the cells, as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

from orchestrator.analyse.left_out import GridCell, Prediction
from orchestrator.decide.step_maps import StepMap, step_maps
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH


def map_section(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """Nothing where no way to speculate was timed at two cells or more."""
    maps = list(step_maps(result.trials))
    if not maps:
        return
    yield f"## {words('maps.title')}"
    yield ""
    yield words("maps.intro").replace("*", "\\*")
    yield ""
    for each in maps:
        yield f"**{map_title(each)}**"
        yield ""
        yield from _grid(each, words)
        yield ""
        yield from _between(each, words)


def map_title(each: StepMap) -> str:
    draft = f" ({each.draft})" if each.draft else ""
    return f"{each.method}{draft} · {each.workload} · T={each.temperature:g}"


def margin(cell: GridCell) -> float:
    """Tokens per step over AL*, less one: above 0 it pays."""
    return cell.tokens_per_step / cell.break_even_acceptance_length - 1


def _grid(each: StepMap, words: Words) -> Iterator[str]:
    batches = sorted({cell.batch for cell in each.cells})
    lengths = sorted({cell.speculation_length for cell in each.cells})
    known = {(cell.speculation_length, cell.batch): cell for cell in each.cells}
    shown: tuple[tuple[str, Callable[[GridCell], str]], ...] = (
        ("maps.needed", lambda cell: f"{cell.break_even_acceptance_length:.2f}"),
        ("maps.got", lambda cell: f"{cell.tokens_per_step:.2f}"),
        ("maps.margin", lambda cell: f"{margin(cell):+.0%}"),
    )
    head = [words("maps.length"), words("maps.figure")]
    head += [words("maps.batch", batch=batch) for batch in batches]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for length in lengths:
        for key, text in shown:
            found = (known.get((length, batch)) for batch in batches)
            values = ["–" if cell is None else text(cell) for cell in found]
            name = words(key).replace("*", "\\*")
            yield "| " + " | ".join([f"K={length}", name, *values]) + " |"


def _between(each: StepMap, words: Words) -> Iterator[str]:
    found, checked = each.predictions(), each.left_out()
    if found:
        yield words("maps.between", confidence=f"{each.confidence:.0%}")
        yield ""
        yield from (f"- {_said(one, words)}" for one in found)
        yield ""
    if checked:
        errors = [abs(one.error) for one in checked if one.error is not None]
        inside = sum(one.low <= (one.measured or 0.0) <= one.high for one in checked)
        yield words(
            "maps.checked",
            cells=len(checked),
            median=f"{statistics.median(errors):.1%}",
            most=f"{max(errors):.1%}",
            inside=inside,
        )
        yield ""
    elif not found:
        yield words("maps.too_few")
        yield ""


def _said(one: Prediction, words: Words) -> str:
    return words(
        "maps.predicted",
        length=one.speculation_length,
        batch=one.batch,
        speedup=f"{one.speedup:.2f}",
        low=f"{one.low:.2f}",
        high=f"{one.high:.2f}",
    )
