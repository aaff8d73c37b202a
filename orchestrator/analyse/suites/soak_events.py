"""Bursts and faults of a soak: what clients saw, and which arm got over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.analyse.exact_tests import fisher
from orchestrator.analyse.soak.facts import SoakFacts, quiet_after, seen_of
from orchestrator.analyse.soak.recovery import Recovery, much_longer, recovery_of
from orchestrator.records import ARMS, Arm
from orchestrator.run.suites.record import CaseResult, CaseStatus

CHANCE = 0.001
COUNTERS_APART = 0.1
"""Share by which counters and answers may differ in a few windows: requests lie across edges."""
COUNTED_MIN = 3
"""Windows over which counters and answers are compared."""


def event_cases(facts: SoakFacts) -> Iterator[CaseResult]:
    """One case an event, in order of time; what could not be injected is not passed."""
    for number, event in enumerate(facts.events, 1):
        name = f"{event['kind']} {event['label']} ({number})"
        if event["skipped"] is not None:
            yield CaseResult(
                case=name,
                status=CaseStatus.NOT_RUN,
                must="the speculative arm gets over it as the baseline does",
                seen=f"SKIPPED: {event['skipped']}",
            )
            continue
        yield _judged(facts, name, event)


def _judged(facts: SoakFacts, name: str, event: Mapping[str, Any]) -> CaseResult:
    found: dict[Arm, Recovery] = {
        arm: recovery_of(seen_of(event, arm), event["began_s"], event["ended_s"], event["until_s"])
        for arm in ARMS
    }
    ours, base = found["speculative"], found["baseline"]
    wrong = [*_wrong(ours, base, event), *_counters(facts, event)]
    status = CaseStatus.PASS
    if wrong:
        status = CaseStatus.FAIL
    elif ours.enough and base.enough and ours.recovered_s is None and base.recovered_s is None:
        status = CaseStatus.BOTH_FAIL
    elif not ours.enough or not base.enough:
        status = CaseStatus.CANNOT_TELL
    texts = [*wrong, *(f"{arm}: {_text(found[arm])}" for arm in ARMS)]
    if (died := event.get("died")) and any(died.values()):
        texts.append("started again: " + ", ".join(arm for arm in ARMS if died.get(arm)))
    texts += [_equality(event), *event.get("notes", ())]
    return CaseResult(
        case=name,
        status=status,
        must="the speculative arm gets over it as the baseline does, with the same output after it",
        seen="; ".join(text for text in texts if text),
        evidence={
            arm: {
                "requests": found[arm].requests,
                "failed": found[arm].failed,
                "recovered_s": found[arm].recovered_s,
                "overshoot": found[arm].overshoot,
            }
            for arm in ARMS
        },
    )


def _wrong(ours: Recovery, base: Recovery, event: Mapping[str, Any]) -> Iterator[str]:
    if ours.failed and base.requests and ours.requests:
        p = fisher(ours.failed, ours.requests, base.failed, base.requests, "greater")
        if p < CHANCE:
            yield "more requests failed than the baseline's"
    if much_longer(ours, base):
        yield "took much longer than the baseline"
    died = event.get("died", {})
    if died.get("speculative") and not died.get("baseline"):
        yield "the speculative engine died, the baseline did not"
    before, after = _share(event, "before"), _share(event, "after")
    if before is not None and after is not None and before == 1.0 and after < 1.0:
        yield "greedy output is no longer the baseline's"


def _share(event: Mapping[str, Any], when: str) -> float | None:
    counted = event.get("equal", {}).get(when)
    return None if not counted or not counted[1] else counted[0] / counted[1]


def _equality(event: Mapping[str, Any]) -> str:
    texts = []
    for when in ("before", "after"):
        counted = event.get("equal", {}).get(when)
        if counted and counted[1]:
            texts.append(f"{counted[0]} of {counted[1]} {when}")
    return f"greedy output equal to the baseline's: {', '.join(texts)}" if texts else ""


def _counters(facts: SoakFacts, event: Mapping[str, Any]) -> Iterator[str]:
    """Counters against answers in the quiet windows that follow, arm by arm."""
    rows = list(quiet_after(facts, event))
    apart: dict[Arm, float] = {}
    for arm in ARMS:
        pairs = [
            (figures["counted_tokens"], figures["received_tokens"])
            for row in rows
            if (figures := row["arms"].get(arm, {})).get("counted_tokens") is not None
        ]
        received = sum(pair[1] or 0 for pair in pairs)
        if len(pairs) >= COUNTED_MIN and received:
            apart[arm] = sum(pair[0] for pair in pairs) / received - 1
    ours = apart.get("speculative")
    if ours is not None and abs(ours) > COUNTERS_APART + abs(apart.get("baseline", 0.0)):
        yield f"its counters tell of {ours:+.0%} more tokens than were received afterwards"
    broken = [
        arm for arm in ARMS if any(row["arms"].get(arm, {}).get("counters_broken") for row in rows)
    ]
    if "speculative" in broken and "baseline" not in broken:
        yield "its counters contradict each other afterwards"


def _text(found: Recovery) -> str:
    parts = [f"{found.failed} of {found.requests} requests failed"]
    if found.errors:
        parts[0] += " (" + ", ".join(f"{name} {count}" for name, count in found.errors) + ")"
    if found.recovered_s is not None:
        parts.append(f"as before after {found.recovered_s:.3g} s")
    elif found.enough:
        parts.append(f"not as before within {found.watched_s:.3g} s")
    else:
        parts.append("too few requests around it to tell")
    if found.overshoot is not None:
        parts.append(f"first token up to {found.overshoot:.3g} times the usual")
    return ", ".join(parts)
