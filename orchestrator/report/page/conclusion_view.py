"""Conclusions as the page shows them: what holds, where, how surely, on what it rests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.decide.conclusion import Conclusion, Conditions, Confidence, Kind
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.row import trial_label


@dataclass(frozen=True)
class Evidence:
    trial_id: str
    label: str


@dataclass(frozen=True)
class Statement:
    """One conclusion in words."""

    tone: str
    tone_text: str
    text: str
    conditions: str
    confidence: str
    evidence: tuple[Evidence, ...]
    not_measured: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """All statements about one thing."""

    kind: str
    heading: str
    statements: tuple[Statement, ...]


def groups(found: Sequence[Conclusion], result: SweepResult, words: Words) -> tuple[Group, ...]:
    """By kind, in the order in which they are read; the overall one is left to the headline. Of one
    kind, what is known comes first."""
    labels = {trial.trial.id: trial_label(trial.trial, words) for trial in result.every}
    return tuple(
        Group(
            str(kind),
            words(f"conclusion.{kind}"),
            tuple(
                statement(one, labels, words)
                for one in sorted(found, key=lambda one: one.tone == "unknown")
                if one.kind is kind
            ),
        )
        for kind in Kind
        if kind is not Kind.OVERALL and any(one.kind is kind for one in found)
    )


def statement(conclusion: Conclusion, labels: dict[str, str], words: Words) -> Statement:
    return Statement(
        tone=conclusion.tone,
        tone_text=words(f"tone.{conclusion.tone}"),
        text=words.message(conclusion.message),
        conditions=conditions_text(conclusion.conditions, words),
        confidence=(
            "" if conclusion.confidence is None else confidence_text(conclusion.confidence, words)
        ),
        evidence=tuple(Evidence(id, labels.get(id, id)) for id in conclusion.evidence),
        not_measured=tuple(words.message(gap) for gap in conclusion.not_measured),
    )


def confidence_text(confidence: Confidence, words: Words) -> str:
    """The interval of the weakest cell, its pairs, and what the control says of the machine."""
    parts = []
    if confidence.speedup is not None:
        span = f"{confidence.speedup:.2f}x"
        if confidence.low is not None and confidence.high is not None:
            span += f" [{confidence.low:.2f}, {confidence.high:.2f}]"
        parts.append(
            words(
                "conclusion.interval",
                metric=words(f"figure.{confidence.metric}"),
                span=span,
                level=f"{confidence.level:.0%}",
            )
        )
    parts.append(words("count.pairs", count=confidence.pairs))
    parts.append(words(f"conclusion.control_{confidence.control}"))
    if confidence.confirmed is not None:
        key = "conclusion.confirmed" if confidence.confirmed else "conclusion.not_confirmed"
        parts.append(words(key))
    return " · ".join(parts)


def conditions_text(conditions: Conditions, words: Words) -> str:
    """What the statement was measured under, as far as it differs from cell to cell."""
    parts = [words.listed(list(conditions.drafts)), words.listed(list(conditions.workloads))]
    if conditions.input_tokens is not None:
        parts.append(words("conclusion.input_tokens", range=_range(conditions.input_tokens)))
    if conditions.load_range is not None and conditions.load_mode is not None:
        load = _range(conditions.load_range)
        closed = conditions.load_mode == "closed"
        parts.append(words("cell.in_flight" if closed else "cell.rps", n=load))
    if conditions.temperatures:
        parts.append("T=" + ", ".join(f"{t:g}" for t in conditions.temperatures))
    parts += list(conditions.sampling)
    return " · ".join(part for part in parts if part)


def _range(ends: tuple[float, float]) -> str:
    low, high = ends
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"
