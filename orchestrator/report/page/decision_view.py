"""What to do, the eight dimensions, and which scenarios it fits."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.decide.recommendation import recommend
from orchestrator.decide.scenario_fit import Fit, ScenarioFit, scenario_fits
from orchestrator.decide.score_card import Dimension, Status, score_card
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.row import trial_label

_STATE = {
    Status.MEASURED: "ok",
    Status.NOT_MEASURED: "open",
    Status.FAILED: "bad",
    Fit.FITS: "ok",
    Fit.CONDITIONS: "ok",
    Fit.DOES_NOT_FIT: "bad",
    Fit.NOT_ENOUGH: "open",
}


@dataclass(frozen=True)
class Judged:
    """A dimension or a scenario, and what became of it."""

    name: str
    state: str
    """`ok`, `bad` or `open`."""
    state_text: str
    text: str
    more: tuple[str, ...]
    evidence: tuple[str, ...]
    """Trial ids."""


def advice_text(result: SweepResult, words: Words) -> str:
    return words.message(recommend(result).reason)


def dimensions(result: SweepResult, words: Words) -> list[Judged]:
    """The score card."""
    return [_dimension(one, words) for one in score_card(result)]


def _dimension(one: Dimension, words: Words) -> Judged:
    return Judged(
        name=words(f"dimension.{one.name}"),
        state=_STATE[one.status],
        state_text=words(f"status.{one.status}"),
        text=words.message(one.summary),
        more=(),
        evidence=one.evidence,
    )


def scenarios(result: SweepResult, words: Words) -> list[Judged]:
    """Every scenario that was asked about, or all five."""
    return [_scenario(one, words) for one in scenario_fits(result)]


def _scenario(one: ScenarioFit, words: Words) -> Judged:
    more = [words.message(condition) for condition in one.conditions]
    if one.operating_point is not None:
        at = trial_label(one.operating_point.trial.trial, words)
        more.append(words("page.operating_point", cell=at))
        if one.operating_point.headroom is not None:
            spare = 100 * one.operating_point.headroom
            more.append(words("scenario.headroom", percent=spare))
        if one.load_headroom is not None and one.load_headroom > 1:
            more.append(words("scenario.load_headroom", times=one.load_headroom))
    return Judged(
        name=str(getattr(one.profile.title, words.language)),
        state=_STATE[one.fit],
        state_text=words(f"fit.{one.fit}"),
        text=words.message(one.reason),
        more=tuple(more),
        evidence=one.evidence,
    )
