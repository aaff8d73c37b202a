"""One trial in full: every figure of it, pair by pair, and the files they come from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from orchestrator.analyse.pairs import SPEEDUPS, Pair
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Decision
from orchestrator.report.language import Words
from orchestrator.report.row import (
    Row,
    row,
    speedup_text,
    trial_label,
    verdict_key,
    verdict_name,
)

MARKS = {
    "faster": "▲",
    "slower": "▼",
    "no_practical_difference": "＝",
    "cannot_tell": "?",
    "failed": "✕",
}
"""A sign beside every verdict, so that none is told by its colour alone."""


@dataclass(frozen=True)
class FigureLine:
    """A figure of both arms: name, its heading, baseline, speculative."""

    name: str
    heading: str
    baseline: str
    speculative: str


@dataclass(frozen=True)
class PairLine:
    index: int
    order: str
    ratios: tuple[str, ...]
    throughputs: tuple[str, str]
    acceptance_length: str
    state: str
    valid: bool
    files: tuple[tuple[str, str], ...]
    """(arm, path of its block's JSON, relative to the page)"""


@dataclass(frozen=True)
class Detail:
    """What the page shows of one trial."""

    row: Row
    css: str
    mark: str
    speedups: tuple[tuple[str, str, str], ...]
    """(metric, interval, verdict)"""
    figures: tuple[FigureLine, ...]
    pairs: tuple[PairLine, ...]
    notes: tuple[str, ...]
    failure: str | None
    log_tail: str | None
    files: tuple[str, ...]
    sort: dict[str, float | None]
    """What the table sorts by where a cell's text does not."""


def details(result: SweepResult, words: Words) -> list[Detail]:
    return [_detail(trial, result.decision(trial), words) for trial in result.every]


def _detail(trial: TrialResult, decision: Decision, words: Words) -> Detail:
    css = verdict_key(trial, decision).removeprefix("verdict.")
    outcome = trial.outcome
    failed = trial.failed and outcome is not None
    own = trial.trial.id
    return Detail(
        row=row(trial, decision, words),
        css=css,
        mark=MARKS.get(css, "–"),
        speedups=tuple(
            (
                words(f"figure.{name}"),
                speedup_text(decision if name == decision.metric else trial.decisions[name]),
                words(
                    verdict_name(
                        (decision if name == decision.metric else trial.decisions[name]).verdict
                    )
                ),
            )
            for name in SPEEDUPS
        )
        if trial.pairs
        else (),
        figures=tuple(_figures(trial, words)),
        pairs=tuple(_pair(pair, own, words) for pair in trial.pairs),
        notes=tuple(words.sentence(note) for note in decision.notes),
        failure=(
            f"{words.sentence(str(outcome.failure))}: {words.sentence(str(outcome.cause))}"
            if failed and outcome is not None
            else None
        ),
        log_tail=outcome.log_tail if failed and outcome is not None else None,
        files=_files(trial),
        sort={
            "load": trial.rung.offered if trial.rung.load.mode == "open" else None,
            "speedup": decision.speedup,
            "acceptance_length": trial.acceptance_length,
            "pairs": float(len(trial.valid_pairs)),
        },
    )


def _files(trial: TrialResult) -> tuple[str, ...]:
    """Relative to the page, which lies in the sweep's folder; only those that a trial writes."""
    own = trial.trial.id
    names = ["trial.json"]
    names += ["engines.json"] if trial.engines else []
    names += ["outcome.json"] if trial.outcome is not None else []
    return tuple(f"{own}/{name}" for name in names)


def _figures(trial: TrialResult, words: Words) -> list[FigureLine]:
    """Every figure of the valid pairs under its METRICS name."""
    if not trial.valid_pairs:
        return []
    baseline, speculative = trial.figures["baseline"], trial.figures["speculative"]
    lines = []
    for name in dict.fromkeys([*baseline, *speculative]):
        heading = words(f"field.{name}") if words.has(f"field.{name}") else ""
        lines.append(
            FigureLine(name, heading, _number(baseline.get(name)), _number(speculative.get(name)))
        )
    return lines


def _pair(pair: Pair, own: str, words: Words) -> PairLine:
    acceptance = pair.speculative.acceptance
    length = None if acceptance is None else acceptance.acceptance_length
    return PairLine(
        index=pair.index,
        order="A B" if pair.baseline_first else "B A",
        ratios=tuple(
            f"{math.exp(pair.log_ratios[name]):.3f}" if name in pair.log_ratios else "–"
            for name in SPEEDUPS
        ),
        throughputs=(
            _number(pair.baseline.output_tok_per_s),
            _number(pair.speculative.output_tok_per_s),
        ),
        acceptance_length="–" if length is None else f"{length:.2f}",
        state="; ".join(words.sentence(reason) for reason in pair.why_invalid()),
        valid=pair.valid,
        files=tuple(
            (letter, f"{own}/blocks/{pair.index:03d}-{letter}.json") for letter in ("A", "B")
        ),
    )


def _number(value: float | None) -> str:
    """Four digits, thousands apart, whole counts whole."""
    if value is None:
        return "–"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.4g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.3e}"


__all__ = ["MARKS", "Detail", "details", "trial_label"]
