"""Where it pays: the speedup over load, over length, and over batch size and speculation length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.analyse.pairs import SPEEDUPS
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.plan.ladder import load_level
from orchestrator.report.language import Words
from orchestrator.report.page.panel import (
    Figure,
    Panel,
    columns_of,
    deployment_text,
    figure_of,
    places,
    series_of,
    slots,
)
from orchestrator.report.row import load_text, trial_label, verdict_key


def speedup_figures(result: SweepResult, words: Words) -> Iterator[Figure]:
    yield _over_load(result, words)
    yield _over_length(result, words)
    yield _heat_map(result, words)


def _over_load(result: SweepResult, words: Words) -> Figure:
    colours = slots(result, words)
    panels = [
        Panel(
            kind="speedup",
            title=place.title(),
            summary=words("plot.speedup_summary", place=place.title()),
            columns=_columns(words, "deployment", "load"),
            points=[_point(trial, result, words) for trial in trials if trial.pairs],
            options={
                "x": _load_label(trials, words),
                "series": series_of(trials, colours, words),
                **_references(result),
            },
        )
        for place, trials in places(result).items()
        if any(trial.pairs for trial in trials)
    ]
    return figure_of(
        "over-load",
        "over_load",
        panels,
        words,
        absent=words("plot.nothing_measured"),
        switchable=True,
    )


def _over_length(result: SweepResult, words: Words) -> Figure:
    """One plot a temperature and load; needs workloads of different length, counted in tokens."""
    colours = slots(result, words)
    lengths = _median_tokens(result)
    groups: dict[tuple[float, str], list[TrialResult]] = {}
    for trial in result.trials:
        cell = trial.trial.cell
        if trial.pairs and lengths.get(cell.workload.name) is not None:
            key = (cell.sampling.temperature, load_text(cell.load, words))
            groups.setdefault(key, []).append(trial)
    panels = []
    for (temperature, load), trials in groups.items():
        if len({lengths[trial.trial.cell.workload.name] for trial in trials}) < 2:
            continue
        title = f"{load} · T={temperature:g}"
        points = [
            {
                **_point(trial, result, words),
                "x": lengths[trial.trial.cell.workload.name],
                "workload": trial.trial.cell.workload.name,
            }
            for trial in trials
        ]
        panels.append(
            Panel(
                kind="speedup",
                title=title,
                summary=words("plot.length_summary", place=title),
                columns=(*_columns(words, "deployment", "workload"), ("x", words("axis.tokens"))),
                points=points,
                options={
                    "x": words("axis.tokens"),
                    "series": series_of(trials, colours, words),
                    **_references(result),
                },
            )
        )
    return figure_of(
        "over-length",
        "over_length",
        panels,
        words,
        absent=words("plot.one_length"),
        switchable=True,
    )


def _heat_map(result: SweepResult, words: Words) -> Figure:
    panels = []
    for place, trials in places(result, always_by_method=True).items():
        measured = [trial for trial in trials if trial.pairs]
        loads = {load_level(trial.trial.cell.load) for trial in trials}
        lengths = {trial.trial.cell.speculation_length for trial in trials}
        if not measured or len(loads) * len(lengths) < 2:
            continue
        panels.append(
            Panel(
                kind="heat",
                title=place.title(),
                summary=words("plot.heat_summary", place=place.title()),
                columns=_columns(words, "k", "load"),
                points=[_point(trial, result, words) for trial in measured],
                options={
                    "x": _load_label(trials, words),
                    "y": words("axis.speculation_length"),
                    "xs": sorted(loads),
                    "ys": sorted(lengths),
                },
            )
        )
    return figure_of(
        "batch-by-k", "heat", panels, words, absent=words("plot.one_point"), switchable=True
    )


def _point(trial: TrialResult, result: SweepResult, words: Words) -> dict[str, Any]:
    cell = trial.trial.cell
    decisions = {**trial.decisions, trial.trial.protocol.metric: result.decision(trial)}
    return {
        "id": trial.trial.id,
        "label": trial_label(trial.trial, words),
        "deployment": deployment_text(trial.trial, words),
        "k": cell.speculation_length,
        "load": load_text(cell.load, words),
        "x": load_level(cell.load),
        "m": {
            name: [
                decision.speedup,
                decision.low,
                decision.high,
                verdict_key(trial, decision).removeprefix("verdict."),
            ]
            for name, decision in decisions.items()
        },
    }


def _columns(words: Words, *names: str) -> tuple[tuple[str, str], ...]:
    return (*columns_of(words, *names), ("m", words("column.speedup")))


def _load_label(trials: list[TrialResult], words: Words) -> str:
    closed = all(trial.trial.cell.load.mode == "closed" for trial in trials)
    return words("axis.in_flight" if closed else "axis.rps")


def _references(result: SweepResult) -> dict[str, Any]:
    """The A/A interval (headline metric) and the margin, to be drawn behind the points."""
    control = result.control()
    interval = None if control is None else control.interval
    protocol = result.every[0].trial.protocol
    return {
        "control": None if interval is None else [interval.low, interval.high],
        "margin": protocol.margin,
    }


def _median_tokens(result: SweepResult) -> dict[str, float | None]:
    """Median input length of every workload, as the prompt sets were counted; else as served."""
    found: dict[str, float | None] = {}
    for name, profile in (result.manifest.get("prompts") or {}).items():
        found[name] = ((profile or {}).get("tokens") or {}).get("median")
    return found


__all__ = ["SPEEDUPS", "speedup_figures"]
