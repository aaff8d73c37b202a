"""What it costs and brings: latency distributions, throughput against speed per user, time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log
from typing import Any

from orchestrator.analyse.rung import Estimate
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult, slo_bounds
from orchestrator.plan.ladder import load_level
from orchestrator.records import ARMS, Arm
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
from orchestrator.report.row import load_text, trial_label

SHOWN = 12
"""Cells drawn one by one; the others are in their own details."""


def focus(result: SweepResult) -> list[TrialResult]:
    """The cells worth a plot of their own: the best of every workload and temperature at its lowest
    and its highest load; at most `SHOWN`, the best cell of the sweep first."""
    chosen: dict[str, TrialResult] = {}
    if result.best is not None:
        chosen[result.best.trial.id] = result.best
    for trials in places(result).values():
        measured = [trial for trial in trials if trial.valid_pairs]
        for end in (min, max):
            level = end((load_level(t.trial.cell.load) for t in measured), default=None)
            at = [t for t in measured if load_level(t.trial.cell.load) == level]
            if at:
                best = max(at, key=lambda t: result.decision(t).low or 0.0)
                chosen.setdefault(best.trial.id, best)
    return list(chosen.values())[:SHOWN]


def load_figures(result: SweepResult, words: Words) -> Iterator[Figure]:
    yield _latencies(result, words)
    yield _pareto(result, words)
    yield _pair_by_pair(result, words)
    yield _machine(result, words)


def _latencies(result: SweepResult, words: Words) -> Figure:
    cells = [t for t in focus(result) if any(t.distributions.values())]
    panels = tuple(
        Panel(
            kind="distribution",
            title=trial_label(trial.trial, words),
            summary=words("plot.latency_summary", place=trial_label(trial.trial, words)),
            columns=(),
            points=[{"id": trial.trial.id}],
            options={"trial": trial.trial.id},
        )
        for trial in cells
    )
    return figure_of(
        "latency",
        "latency",
        panels,
        words,
        absent=words("plot.nothing_measured"),
        text=words("plot.latency_text", shown=len(panels), all=len(result.trials)),
    )


def _pareto(result: SweepResult, words: Words) -> Figure:
    colours = slots(result, words)
    bound = slo_bounds(result.manifest["experiment"].get("slo") or {}).tpot_s
    panels = []
    for place, trials in places(result).items():
        points = list(_operating_points(trials, words))
        if points:
            panels.append(
                Panel(
                    kind="pareto",
                    title=place.title(),
                    summary=words("plot.pareto_summary", place=place.title()),
                    columns=columns_of(words, "deployment", "load", "x", "y"),
                    points=points,
                    options={
                        "x": words("axis.per_user"),
                        "y": words("axis.throughput"),
                        "series": [
                            [words("cell.baseline_only"), -1],
                            *series_of(trials, colours, words),
                        ],
                        "slo": None if bound is None else 1 / bound,
                        "slo_label": words("plot.slo_area"),
                    },
                )
            )
    text = words("plot.pareto_text")
    if bound is None:
        text += " " + words("plot.no_slo")
    return figure_of(
        "pareto", "pareto", panels, words, absent=words("plot.nothing_measured"), text=text
    )


def _operating_points(trials: Sequence[TrialResult], words: Words) -> Iterator[dict[str, Any]]:
    """Every deployment at every load; the baseline, measured beside each, as the mean of them."""
    baselines: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        for arm in ARMS:
            point = _operating_point(trial, arm, words)
            if point is None:
                continue
            if arm == "speculative":
                yield point
            else:
                baselines.setdefault(point["load"], []).append(point)
    for points in baselines.values():
        yield {
            **points[0],
            "label": words("plot.baselines", count=len(points)),
            **{axis: _geometric_mean([point[axis] for point in points]) for axis in ("x", "y")},
        }


def _operating_point(trial: TrialResult, arm: Arm, words: Words) -> dict[str, Any] | None:
    at = trial.rung.arms.get(arm)
    if at is None or at.tpot_s is None or at.output_tok_per_s is None or at.tpot_s.value <= 0:
        return None
    baseline = arm == "baseline"
    return {
        "id": trial.trial.id,
        "label": trial_label(trial.trial, words),
        "deployment": (
            words("cell.baseline_only") if baseline else deployment_text(trial.trial, words)
        ),
        "load": load_text(trial.trial.cell.load, words),
        "order": load_level(trial.trial.cell.load),
        "x": 1 / at.tpot_s.value,
        "y": at.output_tok_per_s.value,
    }


def _geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(log(value) for value in values) / len(values))


def _pair_by_pair(result: SweepResult, words: Words) -> Figure:
    panels = tuple(
        Panel(
            kind="pairs",
            title=trial_label(trial.trial, words),
            summary=words("plot.pairs_summary", place=trial_label(trial.trial, words)),
            columns=(),
            points=[{"id": trial.trial.id}],
            options={"trial": trial.trial.id},
        )
        for trial in [*result.controls, *focus(result)]
        if len(trial.pairs) > 1
    )
    drifting = [
        trial_label(trial.trial, words)
        for trial in result.every
        if (drift := result.decision(trial).trend.drift) is not None and drift.present
    ]
    found = (
        words("plot.drifting", cells=words.listed(drifting)) if drifting else words("plot.no_drift")
    )
    return figure_of(
        "pairs",
        "pairs",
        panels,
        words,
        absent=words("plot.nothing_measured"),
        text=f"{words('plot.pairs_text')} {found}",
    )


def _machine(result: SweepResult, words: Words) -> Figure:
    """The baseline against itself over the whole sweep: what it did at one load, hour by hour."""
    groups: dict[str, list[TrialResult]] = {}
    for trial in result.every:
        cell = trial.trial.cell
        if trial.started_unix_s is not None and trial.rung.arms.get("baseline") is not None:
            key = " · ".join(
                [
                    cell.workload.name,
                    load_text(cell.load, words),
                    f"T={cell.sampling.temperature:g}",
                ]
            )
            groups.setdefault(key, []).append(trial)
    began = min((t.started_unix_s for t in result.every if t.started_unix_s is not None), default=0)
    points = [point for key, group in groups.items() for point in _levels(key, group, began, words)]
    panels = (
        (
            Panel(
                kind="machine",
                title=words("plot.machine_title"),
                summary=words("plot.machine_summary"),
                columns=columns_of(words, "cell", "minutes", "level"),
                points=points,
                options={"x": words("axis.minutes"), "y": words("axis.level")},
            ),
        )
        if points
        else ()
    )
    return figure_of("machine", "machine", panels, words, absent=words("plot.machine_absent"))


def _levels(
    key: str, group: Sequence[TrialResult], began: float, words: Words
) -> Iterator[dict[str, Any]]:
    """Throughput of each trial's baseline / its geometric mean over the group; groups of two up."""
    known: list[tuple[TrialResult, Estimate]] = [
        (trial, level)
        for trial in group
        if (level := trial.rung.arms["baseline"].output_tok_per_s) is not None and level.value > 0
    ]
    if len(known) < 2:
        return
    middle = _geometric_mean([level.value for _, level in known])
    for trial, level in known:
        assert trial.started_unix_s is not None
        yield {
            "id": trial.trial.id,
            "label": trial_label(trial.trial, words),
            "cell": key,
            "minutes": (trial.started_unix_s - began) / 60,
            "level": level.value / middle,
        }
