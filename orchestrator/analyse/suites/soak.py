"""What a soak shows: stable, drifting, leaking or fragile, for how long, and what was too short.

What both arms share is not blamed on speculation: it is shown as `fail in both`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator.analyse.soak.facts import SoakFacts, soak_facts
from orchestrator.analyse.soak.figures import judged_names
from orchestrator.analyse.suites.recorded import label_of
from orchestrator.analyse.suites.soak_controls import control_cases
from orchestrator.analyse.suites.soak_events import event_cases
from orchestrator.analyse.suites.soak_trends import Judged, error_case, stall_case, trend_case
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteRecord, SuiteResult

CHANCE = 0.05
"""Of any false finding among all trends of a soak; shared out evenly (Bonferroni)."""
TESTS_EACH = 3
"""Either arm, and their difference."""
NEEDED = ("output_tok_per_s", "tpot_p50_s", "acceptance_length", "process_rss_bytes")
"""What must be decided before a soak is called stable, as far as the servers tell it."""
BAD = (CaseStatus.FAIL, CaseStatus.CRASHED)


def judge_soak(record: SuiteRecord) -> SuiteResult:
    """The verdict on one soak. Trends, stalls and errors, events, controls; in this order."""
    facts = soak_facts(record)
    judged = list(_trends(facts))
    events = list(event_cases(facts))
    steady = [stall_case(facts), error_case(facts)]
    findings = [one for one in judged if one.case.status in BAD]
    controls = list(control_cases(facts, [one.name for one in findings], 1 - CHANCE))
    fragile = [case for case in [*events, *steady] if case.status in BAD]
    verdict, ok = _verdict(facts, judged, fragile)
    return SuiteResult(
        suite=record.suite,
        pair_key=record.pair_key,
        label=label_of(record),
        verdict=verdict,
        ok=ok,
        cases=(*(one.case for one in judged), *steady, *events, *controls),
        metrics=_metrics(facts, judged),
        notes=(*record.notes, *_notes(facts, judged, controls)),
        complete=record.complete,
        simulated=record.simulated,
    )


def _trends(facts: SoakFacts) -> Iterator[Judged]:
    names = judged_names(facts.names())
    confidence = 1 - CHANCE / (TESTS_EACH * max(1, len(names)))
    for name, figure in names.items():
        found = trend_case(facts, name, figure, confidence)
        if found is not None:
            yield found


def _verdict(
    facts: SoakFacts, judged: Sequence[Judged], fragile: Sequence[CaseResult]
) -> tuple[str, bool | None]:
    """`leaking`, `drifting`, `fragile` (as many as hold), else `stable`, else what is missing."""
    bad = [one for one in judged if one.case.status in BAD]
    words = []
    if any(one.figure.kind == "resource" for one in bad):
        words.append("leaking")
    if any(one.figure.kind != "resource" for one in bad):
        words.append("drifting")
    if fragile:
        words.append("fragile")
    hours = f"{_hours(facts.hours)} of {facts.settings['profile']} load"
    if words:
        return f"{' and '.join(words)} ({hours})", False
    both = [one.name for one in judged if one.case.status is CaseStatus.BOTH_FAIL]
    shared = f"; in both arms alike: {', '.join(both)}" if both else ""
    open_ = [one.name for one in judged if one.case.status is CaseStatus.CANNOT_TELL]
    needed = [name for name in NEEDED if name in open_]
    if not judged or needed:
        missing = ", ".join(needed) or "everything"
        return f"nothing found, and too short to tell of {missing} ({hours}{shared})", None
    return f"stable ({hours}{shared})", True


def _metrics(facts: SoakFacts, judged: Sequence[Judged]) -> dict[str, float]:
    found = {"soak_hours": facts.hours}
    for one in judged:
        # Categories are anybody's words; names of metrics are not.
        shown = re.sub(r"[^\w./-]", "_", one.name, flags=re.ASCII)
        found |= {f"{name}/{shown}": value for name, value in one.metrics.items()}
    return found


def _notes(
    facts: SoakFacts, judged: Sequence[Judged], controls: Sequence[CaseResult]
) -> Iterator[str]:
    lives = {
        arm: 1 + max((row["life"].get(arm, 0) for row in facts.of("soak")), default=0)
        for arm in ("baseline", "speculative")
    }
    if max(lives.values()) > 1:
        yield (
            f"the engines were started {lives['baseline']} (baseline) and {lives['speculative']} "
            "(speculative) times; trends are read within each life"
        )
    short = [one.name for one in judged if one.case.status is CaseStatus.CANNOT_TELL]
    if short:
        yield f"too short, or too unsteady, to tell of: {', '.join(_by_figure(short))}"
    yield _restarts(facts, judged, controls)


def _by_figure(names: Sequence[str]) -> Iterator[str]:
    """A figure's parts in one: there may be dozens of categories."""
    parts = Counter(name.partition("/")[0] for name in names if "/" in name)
    yield from (name for name in names if "/" not in name)
    yield from (f"{name} of {count} categories or positions" for name, count in parts.items())


def _restarts(facts: SoakFacts, judged: Sequence[Judged], controls: Sequence[CaseResult]) -> str:
    """How often a restart, or an emptied cache, is needed."""
    due = [one for one in judged if one.hours_left is not None and one.case.status in BAD]
    if not due:
        return f"needed restarts: none seen within {_hours(facts.hours)}"
    first = min(due, key=lambda one: one.hours_left or 0.0)
    cures = [case.case for case in controls if case.evidence.get("cures")]
    how = f"; {' and '.join(cures)} cures it" if cures else "; no control has shown a cure"
    return (
        f"needed restarts: one in {_hours(first.hours_left or 0.0)} at the latest, for the sake of "
        f"{first.name} (extrapolated from {_hours(facts.hours)}){how}"
    )


def _hours(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.3g} min"
    return f"{hours:.3g} h" if hours < 48 else f"{hours / 24:.3g} days"
