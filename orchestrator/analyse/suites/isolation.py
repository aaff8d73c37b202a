"""Isolation, judged: the effect of another tenant's request, with its interval.

Per arm, condition (with or without salts) and observable, over pairs of one prompt that another
tenant has put before and one that nobody has. A leak that the baseline has too (prefix caching) is
shown as both arms' own; one that only speculation has is a finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.analyse.paired_means import MeanComparison, compare_means
from orchestrator.analyse.paired_outcomes import Comparison
from orchestrator.analyse.suites.kind import Kind, kind_of
from orchestrator.analyse.suites.reproduction import reproduction
from orchestrator.plan.deployment import deployment_from
from orchestrator.records import ARMS, Arm
from orchestrator.run.suites.isolation import FRESH, SALTED, TENANT_A, TOUCHED, UNSALTED
from orchestrator.run.suites.openai import read
from orchestrator.run.suites.record import Asked, CaseResult, CaseStatus, SuiteRecord, SuiteResult

LEVEL = 0.001
"""Of one test: with ten tests a pair of deployments, a false alarm in one suite in a hundred."""
PERMUTATIONS = 9_999
MARGIN = 0.05
"""Ratio of times (log), and accepted tokens per output token: no practical difference within it."""

_Values = Mapping[str, float | None]
_Key = tuple[str, Arm, int, str]


@dataclass(frozen=True)
class _Observable:
    name: str
    unit: str
    ratio: bool
    """Compared on the log scale."""
    of: Callable[[Asked, float | None], float | None]


def judge_isolation(record: SuiteRecord) -> SuiteResult:
    """Three observables, with and without salts."""
    asked = {(one.case, one.subject, one.repeat, one.part): one for one in record.asked}
    accepted: dict[_Key, float] = {
        (row["condition"], row["arm"], row["pair"], row["part"]): row["accepted_tokens"]
        for row in record.extra.get("drafted", ())
    }
    rng = np.random.default_rng(int(record.extra.get("seed", 0)))
    cases = tuple(
        _case(observable, condition, asked, accepted, rng)
        for condition in (UNSALTED, SALTED)
        for observable in _OBSERVABLES
    )
    only = [case for case in cases if case.status is CaseStatus.FAIL]
    both = [case for case in cases if case.status is CaseStatus.BOTH_FAIL]
    run = [case for case in cases if case.status is not CaseStatus.NOT_RUN]
    parts = [f"{len(only)} leak{'s' if len(only) > 1 else ''} through speculation"] if only else []
    if both:
        parts.append(f"{len(both)} in both arms")
    return SuiteResult(
        suite=record.suite,
        pair_key=record.pair_key,
        label=deployment_from(record.speculative).label(),
        verdict=", ".join(parts) or ("no leak found" if run else "nothing could be observed"),
        ok=False if only else (True if record.complete and run else None),
        cases=cases,
        metrics={
            "isolation_leaks_speculative": float(len(only) + len(both)),
            "isolation_leaks_baseline": float(
                sum(bool(case.evidence.get("baseline", {}).get("leak")) for case in cases)
            ),
        },
        notes=record.notes,
        complete=record.complete,
        simulated=record.simulated,
    )


def _case(
    observable: _Observable,
    condition: str,
    asked: Mapping[tuple[str, Any, int, str], Asked],
    accepted: Mapping[_Key, float],
    rng: np.random.Generator,
) -> CaseResult:
    name = f"{observable.name}, {condition}"
    must = "another tenant's request changes nothing"
    found: dict[Arm, MeanComparison] = {}
    refused: dict[Arm, str] = {}
    for arm in ARMS:
        values: dict[str, dict[str, float | None]] = {TOUCHED: {}, FRESH: {}}
        for (case, subject, pair, part), one in asked.items():
            if case != condition or subject != arm or part not in values:
                continue
            kind, why = kind_of(one.ask, one.answer)
            if kind is not Kind.ANSWERED:
                refused[arm] = why
                continue
            value = observable.of(one, accepted.get((condition, arm, pair, part)))
            values[part][str(pair)] = value
        found[arm] = compare_means(
            values[FRESH], values[TOUCHED], rng,
            margin=MARGIN, level=LEVEL, permutations=PERMUTATIONS,
        )  # fmt: skip
    evidence: dict[str, dict[str, Any]] = {
        arm: _evidence(observable, one) for arm, one in found.items()
    }
    if found["speculative"].difference is None:
        if refused.keys() == set(ARMS):
            return CaseResult(name, CaseStatus.UNSUPPORTED, must, refused["speculative"])
        why = refused.get("speculative", "not observed")
        return CaseResult(name, CaseStatus.NOT_RUN, must, why, evidence=evidence)
    leaks = {arm: bool(each["leak"]) for arm, each in evidence.items()}
    status = CaseStatus.PASS
    if leaks["speculative"]:
        status = CaseStatus.BOTH_FAIL if leaks["baseline"] else CaseStatus.FAIL
    return CaseResult(
        case=name,
        status=status,
        must=must,
        seen="; ".join(
            f"{arm} {_words(observable, one)}"
            for arm, one in found.items()
            if one.difference is not None
        ),
        reproduce=_reproduction(condition, asked) if leaks["speculative"] else None,
        evidence=evidence,
    )


def _evidence(observable: _Observable, one: MeanComparison) -> dict[str, Any]:
    shown = math.exp if observable.ratio else float
    return {
        "leak": one.comparison in (Comparison.HIGHER, Comparison.LOWER),
        "comparison": str(one.comparison),
        "effect": None if one.difference is None else shown(one.difference),
        "low": None if one.low is None else shown(one.low),
        "high": None if one.high is None else shown(one.high),
        "unit": observable.unit,
        "p_value": one.p_value,
        "pairs": one.prompts,
        "level": one.level,
    }


def _words(observable: _Observable, one: MeanComparison) -> str:
    facts = _evidence(observable, one)
    sign = "" if observable.ratio else "+"
    effect, low, high = (format(facts[key], f"{sign}.2f") for key in ("effect", "low", "high"))
    return f"{effect} {observable.unit} ({low} to {high}, {one.prompts} pairs)"


def _reproduction(condition: str, asked: Mapping[tuple[str, Any, int, str], Asked]) -> str | None:
    """Tenant A's request, then B's."""
    both = [asked.get((condition, "speculative", 0, part)) for part in (TENANT_A, TOUCHED)]
    return " ; ".join(reproduction(one) for one in both if one is not None) or None


def _log_ttft(one: Asked, accepted: float | None) -> float | None:
    events = one.answer.events
    return math.log(events[0][0]) if events and events[0][0] > 0 else None


def _log_pace(one: Asked, accepted: float | None) -> float | None:
    """Time per output token after the first."""
    events, tokens = one.answer.events, _tokens(one)
    if len(events) < 3 or tokens is None or tokens < 2:
        return None
    # The last two events are the usage and the end mark, not tokens.
    passed = events[-3][0] - events[0][0]
    return math.log(passed / (tokens - 1)) if passed > 0 else None


def _accepted_share(one: Asked, accepted: float | None) -> float | None:
    tokens = _tokens(one)
    return None if accepted is None or not tokens else accepted / tokens


def _tokens(one: Asked) -> int | None:
    used = (read(one.answer).usage or {}).get("completion_tokens")
    return used if isinstance(used, int) else None


_OBSERVABLES = (
    _Observable("time to first token", "times that of a fresh prompt", True, _log_ttft),
    _Observable("time per token", "times that of a fresh prompt", True, _log_pace),
    _Observable("acceptance", "accepted tokens per token", False, _accepted_share),
)
