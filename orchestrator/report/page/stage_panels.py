"""Where the time of an engine's step goes, where it was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.report.language import Words
from orchestrator.report.page.panel import (
    Figure,
    Panel,
    columns_of,
    deployment_text,
    figure_of,
    places,
)
from orchestrator.report.row import load_text, trial_label

STAGES = ("draft", "verify", "sample", "overhead")


def stage_figure(result: SweepResult, words: Words) -> Figure:
    """A step's time in drafting, the target's forward pass, acceptance sampling and the rest."""
    panels = []
    names = [words(f"stages.{stage}") for stage in STAGES]
    for place, trials in places(result).items():
        points = list(_points(trials, words))
        if points:
            panels.append(
                Panel(
                    kind="stages",
                    title=place.title(),
                    summary=words("plot.stages_summary", place=place.title()),
                    columns=columns_of(words, "cell", "stage", "ms"),
                    points=points,
                    options={"x": words("axis.ms_per_step"), "stages": names},
                )
            )
    return figure_of("stages", "stages", panels, words, absent=_absent(result, words))


def _points(trials: Sequence[TrialResult], words: Words) -> Iterator[dict[str, Any]]:
    for trial in trials:
        load = load_text(trial.trial.cell.load, words)
        for name, times in (
            (words("cell.baseline_only"), trial.step.baseline),
            (deployment_text(trial.trial, words), trial.step.speculative),
        ):
            for stage in STAGES:
                seconds = None if times is None else getattr(times, f"{stage}_s")
                if seconds is not None:
                    yield {
                        "id": trial.trial.id,
                        "label": trial_label(trial.trial, words),
                        "cell": f"{deployment_text(trial.trial, words)} · {load} · {name}"
                        if times is trial.step.baseline
                        else f"{name} · {load}",
                        "stage": words(f"stages.{stage}"),
                        "ms": seconds * 1e3,
                    }


def _absent(result: SweepResult, words: Words) -> str:
    measured = [trial for trial in result.trials if trial.valid_pairs]
    if not measured:
        return words("plot.nothing_measured")
    return words("stages.not_available", why=words.sentence(measured[0].step.why or ""))
