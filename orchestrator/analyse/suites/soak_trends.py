"""One figure of a soak: steady, worse, leaking, or too short to tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.analyse.exact_tests import fisher
from orchestrator.analyse.soak.drift import Change, Drift, drift_between, drift_of
from orchestrator.analyse.soak.facts import SoakFacts
from orchestrator.analyse.soak.figures import Figure
from orchestrator.analyse.soak.leak import Growth, Leak, leak_of, leaks_more
from orchestrator.analyse.soak.series import Series, thinned
from orchestrator.analyse.soak.stalls import stalls_of
from orchestrator.records import Arm
from orchestrator.run.suites.record import CaseResult, CaseStatus

DRAWN = 60
"""Points of a series that are kept to be drawn."""
ERRORS = 0.001


@dataclass(frozen=True)
class Judged:
    name: str
    figure: Figure
    case: CaseResult
    metrics: Mapping[str, float] = field(default_factory=dict)
    hours_left: float | None = None
    """Until as much is lost, or filled, as matters."""


def trend_case(facts: SoakFacts, name: str, figure: Figure, confidence: float) -> Judged | None:
    """None where the speculative arm does not have the figure."""
    resource = figure.kind == "resource"
    base = facts.series(name, "baseline", resource=resource)
    ours = facts.series(name, "speculative", resource=resource)
    if not ours.points:
        return None
    if resource:
        return _leak_case(facts, name, figure, base, ours, confidence)
    return _drift_case(facts, name, figure, base, ours, confidence)


def _drift_case(
    facts: SoakFacts,
    name: str,
    figure: Figure,
    base: Series,
    ours: Series,
    confidence: float,
) -> Judged:
    margin = float(facts.settings["margin"])

    def alone(series: Series) -> Drift:
        return drift_of(
            series,
            higher_is_better=figure.higher_is_better,
            confidence=confidence,
            margin=margin,
        )

    own = alone(ours)
    if not base.points:
        status, shown, seen = _of_one(own), own, _drift_text(own)
    else:
        theirs = alone(base)
        between = drift_between(
            base,
            ours,
            higher_is_better=figure.higher_is_better,
            confidence=confidence,
            margin=margin,
        )
        shown = between
        status = _of_two(between, own, theirs)
        seen = (
            f"against the baseline {_drift_text(between)}; speculative {_drift_text(own)}, "
            f"baseline {_drift_text(theirs)}"
        )
    seen += "".join(
        f"; a step of {_step(step.change)} at {step.at_h:.3g} h" for step in shown.steps[:3]
    )
    case = CaseResult(
        case=f"trend: {name}",
        status=status,
        must=f"does not get worse by {margin:.0%} over the soak"
        + (", beyond what the baseline does" if base.points else ""),
        seen=seen,
        evidence=_evidence(base, ours),
    )
    metrics = {} if shown.total is None else {"change": shown.total}
    return Judged(name, figure, case, metrics, shown.hours_to_margin)


def _of_one(own: Drift) -> CaseStatus:
    return {
        Change.WORSE: CaseStatus.FAIL,
        Change.STEADY: CaseStatus.PASS,
        Change.BETTER: CaseStatus.PASS,
        Change.CANNOT_TELL: CaseStatus.CANNOT_TELL,
    }[own.change]


def _of_two(between: Drift, own: Drift, theirs: Drift) -> CaseStatus:
    """The difference decides; what both do alike is nobody's fault but the engine's."""
    if between.change is Change.WORSE:
        return CaseStatus.FAIL
    if own.change is Change.WORSE and theirs.change is Change.WORSE:
        return CaseStatus.BOTH_FAIL
    return _of_one(between)


def _leak_case(
    facts: SoakFacts,
    name: str,
    figure: Figure,
    base: Series,
    ours: Series,
    confidence: float,
) -> Judged:
    horizon_h = float(facts.settings["horizon_s"]) / 3600

    def alone(series: Series, arm: Arm) -> Leak:
        level = float(series.values[-1]) if series.points else 0.0
        return leak_of(
            series,
            room=_room(facts, name, figure, arm, level),
            horizon_h=horizon_h,
            confidence=confidence,
            room_min=figure.room_min,
        )

    own = alone(ours, "speculative")
    status = {
        Growth.LEAK: CaseStatus.FAIL,
        Growth.NONE: CaseStatus.PASS,
        Growth.CANNOT_TELL: CaseStatus.CANNOT_TELL,
    }[own.growth]
    seen = f"speculative {_leak_text(own)}"
    if base.points:
        theirs = alone(base, "baseline")
        seen += f"; baseline {_leak_text(theirs)}"
        if own.growth is Growth.LEAK and theirs.growth is Growth.LEAK:
            more = leaks_more(base, ours, confidence)
            if more is None or more.low <= own.bound:
                status = CaseStatus.BOTH_FAIL
    case = CaseResult(
        case=f"growth: {name}",
        status=status,
        must=f"would not fill its room within {horizon_h:.3g} h",
        seen=seen,
        evidence=_evidence(base, ours),
    )
    metrics = {} if own.slope is None else {"growth_per_hour": own.slope}
    return Judged(name, figure, case, metrics, own.hours_left)


def _room(facts: SoakFacts, name: str, figure: Figure, arm: Arm, level: float) -> float | None:
    """What is left to the limit; None where none is known."""
    if figure.limit is None:
        return None
    _, slash, part = name.partition("/")
    known = figure.limit[0].isdigit()
    limit = float(figure.limit) if known else facts.latest(f"{figure.limit}{slash}{part}", arm)
    used = level if figure.used is None else facts.latest(figure.used, arm)
    left = None if limit is None else limit - (level if used is None else used)
    return left if left is not None and left > 0 else None


def stall_case(facts: SoakFacts) -> CaseResult:
    """Does an arm stand still now and then, where the other does not?"""
    found = {
        arm: stalls_of(facts.series("longest_gap_s", arm)) for arm in ("baseline", "speculative")
    }
    ours, base = found["speculative"], found["baseline"]
    texts = []
    for arm, stalls in found.items():
        if stalls is None:
            texts.append(f"{arm}: none")
            continue
        often = f", one every {stalls.period_h * 60:.3g} min" if stalls.period_h else ""
        texts.append(f"{arm}: {len(stalls.at_h)}, up to {stalls.longest_s:.3g} s{often}")
    status = CaseStatus.PASS
    if ours is not None and base is not None:
        status = CaseStatus.BOTH_FAIL
    # One alone may be anybody's; what comes by the clock, or often, is the arm's own.
    elif ours is not None:
        often_ = len(ours.at_h) >= 3
        status = CaseStatus.FAIL if often_ else CaseStatus.CANNOT_TELL
    if not facts.series("longest_gap_s", "speculative").points:
        status, texts = CaseStatus.NOT_RUN, ["no stream was seen"]
    return CaseResult(
        case="stalls",
        status=status,
        must="streams do not stand still again and again where the baseline's do not",
        seen="; ".join(texts),
    )


def error_case(facts: SoakFacts) -> CaseResult:
    """More failed requests than the baseline, bursts and faults left out."""
    ours, base = facts.count("errors", "speculative"), facts.count("errors", "baseline")
    of, base_of = facts.count("requests", "speculative"), facts.count("requests", "baseline")
    status = CaseStatus.PASS if of else CaseStatus.NOT_RUN
    if ours and of and base_of:
        worse = fisher(ours, of, base, base_of, "greater") < ERRORS
        status = CaseStatus.FAIL if worse else CaseStatus.BOTH_FAIL
        if not base and not worse:
            status = CaseStatus.CANNOT_TELL
    return CaseResult(
        case="errors",
        status=status,
        must="no more requests fail than the baseline's",
        seen=f"speculative: {ours} of {of} requests failed, baseline: {base} of {base_of}",
    )


def _evidence(base: Series, ours: Series) -> dict[str, Any]:
    drawn = {}
    for arm, series in (("baseline", base), ("speculative", ours)):
        few = thinned(series, DRAWN)
        drawn[arm] = [
            [float(f"{at:.5g}"), float(f"{x:.5g}")]
            for at, x in zip(few.at_h, few.values, strict=True)
        ]
    return {"series": drawn}


def _drift_text(drift: Drift) -> str:
    if drift.total is None or drift.low is None or drift.high is None:
        return f"{drift.change.value} ({drift.why})"
    if not math.isfinite(drift.high) or not math.isfinite(drift.total):
        return f"{drift.change.value} (too little to bound it, in {drift.hours:.3g} h)"
    return (
        f"{drift.change.value}: {drift.total:+.2%} ({drift.low:+.2%} .. {drift.high:+.2%}) in "
        f"{drift.hours:.3g} h"
    )


def _step(change: float) -> str:
    return f"{change:+.3g} (log)"


def _leak_text(leak: Leak) -> str:
    if leak.slope is None or leak.low is None or leak.high is None:
        return f"{leak.growth.value} ({leak.why})"
    if not math.isfinite(leak.high):
        return f"{leak.growth.value} (too little to bound it, in {leak.hours:.3g} h)"
    end = leak.hours_left
    filled = f", full in {end:.3g} h" if end is not None else ""
    shape = "" if leak.shape == "steady" else f", {leak.shape}"
    return (
        f"{leak.growth.value}: {leak.slope:+.3g} an hour ({leak.low:+.3g} .. {leak.high:+.3g}; "
        f"{leak.bound:.3g} would matter){shape}{filled}"
    )
