"""Heat maps over speculation length and batch size: AL*, what is got, the margin; and what-ifs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from orchestrator.analyse.left_out import GridCell
from orchestrator.decide.step_maps import StepMap, step_maps
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.report.language import Words
from orchestrator.report.map_text import map_title, margin
from orchestrator.report.page.panel import Figure, Panel
from orchestrator.report.row import trial_label
from orchestrator.report.what_if_text import supposed


def map_figures(result: SweepResult, words: Words) -> Iterator[Figure]:
    """Only what there is: most sweeps have one batch size, or suppose nothing."""
    maps = list(step_maps(result.trials))
    if maps:
        yield Figure(
            "step-maps",
            words("maps.title"),
            words("maps.intro"),
            tuple(panel for each in maps for panel in _panels(each, words)),
        )
    panels = tuple(_what_if_panels(result, words))
    if panels:
        yield Figure("what-if", words("what_if.plot"), words("what_if.plot_text"), panels)


def _panels(each: StepMap, words: Words) -> Iterator[Panel]:
    shown: tuple[tuple[str, Callable[[GridCell], float], str, float | None], ...] = (
        ("maps.needed", lambda cell: cell.break_even_acceptance_length, ".2f", None),
        ("maps.got", lambda cell: cell.tokens_per_step, ".2f", None),
        ("maps.margin", margin, "+.0%", 0.0),
    )
    for key, value, form, centre in shown:
        points = [
            _point(trial, cell.speculation_length, cell.batch, value(cell), words)
            for trial, cell in zip(each.trials, each.cells, strict=True)
        ]
        title, in_flight = f"{words(key)} · {map_title(each)}", words("axis.in_flight")
        yield _grid(title, points, words, x=in_flight, value=words(key), form=form, centre=centre)


def _what_if_panels(result: SweepResult, words: Words) -> Iterator[Panel]:
    groups: dict[tuple[str, float, int], list[TrialResult]] = {}
    for trial in result.what_ifs:
        if trial.valid_pairs and trial.decisions["speedup_tpot"].speedup is not None:
            cell = trial.trial.cell
            key = (cell.workload.name, supposed(trial)[1], cell.batch_size)
            groups.setdefault(key, []).append(trial)
    for (workload, cost_s, batch), trials in groups.items():
        place = f"{workload} · {words('maps.batch', batch=batch)} · {cost_s * 1e3:g} ms"
        points = [
            _point(trial, trial.trial.cell.speculation_length, supposed(trial)[0],
                   trial.decisions["speedup_tpot"].speedup or 0.0, words)
            for trial in trials
        ]  # fmt: skip
        yield _grid(place, points, words, x=words("what_if.acceptance"),
                    value=words("what_if.speedup"), form=".2f", centre=1.0,
                    summary=words("what_if.plot_summary", place=place))  # fmt: skip


def _point(trial: TrialResult, length: int, x: float, value: float, words: Words) -> dict[str, Any]:
    label = trial_label(trial.trial, words)
    return {"id": trial.trial.id, "label": label, "k": length, "x": x, "value": value}


def _grid(
    title: str,
    points: list[dict[str, Any]],
    words: Words,
    *,
    x: str,
    value: str,
    form: str,
    centre: float | None,
    summary: str | None = None,
) -> Panel:
    return Panel(
        kind="grid",
        title=title,
        summary=summary or title,
        columns=(("k", words("maps.length")), ("x", x), ("value", value)),
        points=points,
        options={
            "x": x,
            "value": value,
            "format": form,
            "centre": centre,
            "xs": sorted({point["x"] for point in points}),
            "ys": sorted({point["k"] for point in points}),
        },
    )
