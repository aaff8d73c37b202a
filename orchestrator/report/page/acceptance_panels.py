"""Why it pays or does not: what is accepted, beside what would have to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.decide.needed_acceptance import needed_acceptance
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.report.language import Words
from orchestrator.report.page.panel import (
    Figure,
    Panel,
    Place,
    columns_of,
    deployment_text,
    figure_of,
    places,
    series_of,
    slots,
)
from orchestrator.report.row import load_text, trial_label


def acceptance_figures(result: SweepResult, words: Words) -> Iterator[Figure]:
    yield _needed(result, words)
    yield _by_position(result, words)
    yield _by_category(result, words)


def _needed(result: SweepResult, words: Words) -> Figure:
    panels = []
    for place, trials in places(result).items():
        points = []
        for trial in trials:
            needed = needed_acceptance(trial) if trial.valid_pairs else None
            if needed is None:
                continue
            points.append(
                {
                    "id": trial.trial.id,
                    "label": trial_label(trial.trial, words),
                    "cell": f"{deployment_text(trial.trial, words)} · "
                    f"{load_text(trial.trial.cell.load, words)}",
                    "measured": needed.tokens_per_step,
                    "needed": needed.break_even,
                    "low": needed.low,
                    "high": needed.high,
                }
            )
        if points:
            panels.append(
                Panel(
                    kind="needed",
                    title=place.title(),
                    summary=words("plot.needed_summary", place=place.title()),
                    columns=columns_of(words, "cell", "measured", "needed", "low", "high"),
                    points=points,
                    options={"x": words("axis.tokens_per_step")},
                )
            )
    return figure_of("acceptance-needed", "needed", panels, words, absent=words("plot.no_counters"))


def _by_position(result: SweepResult, words: Words) -> Figure:
    colours = slots(result, words)
    panels = []
    for place, trials in places(result).items():
        points = list(_positions(trials, words))
        if points:
            panels.append(
                Panel(
                    kind="position",
                    title=place.title(),
                    summary=words("plot.position_summary", place=place.title()),
                    columns=columns_of(words, "deployment", "position", "rate"),
                    points=points,
                    options={
                        "x": words("axis.position"),
                        "y": words("axis.accepted"),
                        "series": series_of(trials, colours, words),
                    },
                )
            )
    return figure_of(
        "acceptance-by-position", "position", panels, words, absent=words("plot.no_positions")
    )


def _positions(trials: Sequence[TrialResult], words: Words) -> Iterator[dict[str, Any]]:
    """Accepted at a position / drafts, over all loads of a deployment together."""
    drafts: dict[str, float] = {}
    accepted: dict[tuple[str, int], float] = {}
    ids: dict[str, str] = {}
    for trial in trials:
        name = deployment_text(trial.trial, words)
        for pair in trial.valid_pairs:
            found = pair.speculative.acceptance
            if found is None or found.per_position_acceptance_rate is None:
                continue
            ids.setdefault(name, trial.trial.id)
            drafts[name] = drafts.get(name, 0.0) + found.drafts
            for position, rate in enumerate(found.per_position_acceptance_rate, 1):
                key = (name, position)
                accepted[key] = accepted.get(key, 0.0) + rate * found.drafts
    for (name, position), count in accepted.items():
        yield {
            "id": ids[name],
            "label": name,
            "deployment": name,
            "position": position,
            "rate": count / drafts[name],
        }


def _by_category(result: SweepResult, words: Words) -> Figure:
    panels = []
    for place, trials in places(result, always_by_method=True).items():
        best = _longest_measured(trials)
        categories = {} if best is None else best.categories.get("speculative", {})
        points = [
            {
                "id": best.trial.id if best else "",
                "label": name,
                "category": name,
                "tokens": figures.tokens_per_chunk,
                "requests": figures.requests,
            }
            for name, figures in categories.items()
            if figures.tokens_per_chunk is not None
        ]
        if best is not None and points:
            panels.append(_category_panel(place, best, points, words))
    return figure_of(
        "acceptance-by-category", "category", panels, words, absent=words("plot.no_chunks")
    )


def _category_panel(
    place: Place, trial: TrialResult, points: list[dict[str, Any]], words: Words
) -> Panel:
    title = f"{place.title()} · {deployment_text(trial.trial, words).rpartition(' ')[2]}"
    title += f" · {load_text(trial.trial.cell.load, words)}"
    return Panel(
        kind="category",
        title=title,
        summary=words("plot.category_summary", place=title),
        columns=columns_of(words, "category", "tokens", "requests"),
        points=points,
        options={"x": words("axis.tokens_per_chunk")},
    )


def _longest_measured(trials: Sequence[TrialResult]) -> TrialResult | None:
    """The trial with most requests: its categories are known best."""

    def requests(trial: TrialResult) -> int:
        return sum(f.requests for f in trial.categories.get("speculative", {}).values())

    counted = [trial for trial in trials if requests(trial)]
    return max(counted, key=requests, default=None)
