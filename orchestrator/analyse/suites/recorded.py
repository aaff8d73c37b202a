"""Reads a suite's record: who answered what, and what was lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from orchestrator.analyse.agreement import Answer
from orchestrator.plan.deployment import deployment_from
from orchestrator.run.suites.completion import completion_of
from orchestrator.run.suites.openai import read
from orchestrator.run.suites.record import Asked, CaseResult, CaseStatus, Subject, SuiteRecord

FAILURES_SHOWN = 5


def asked_in(record: SuiteRecord, case: str, subject: Subject) -> list[Asked]:
    """A case's requests to one subject, in the order in which they were sent."""
    return [one for one in record.asked if one.case == case and one.subject == subject]


def answers(record: SuiteRecord, case: str, subject: Subject) -> list[Answer]:
    """The whole answers; `prompt_id` is the request's part. A failed request has none."""
    found = []
    for one in asked_in(record, case, subject):
        completion = completion_of(one.answer)
        if completion is not None:
            found.append(
                Answer(one.part, completion.text, completion.token_ids, completion.finish_reason)
            )
    return found


def cases_of(record: SuiteRecord, prefix: str) -> list[str]:
    """Names of the cases that begin so, in the order in which they were first sent."""
    return list(dict.fromkeys(one.case for one in record.asked if one.case.startswith(prefix)))


@dataclass(frozen=True, slots=True)
class Lost:
    """A request that was not answered, and why."""

    case: str
    part: str
    why: str


def lost(record: SuiteRecord, subject: Subject, *, but: Collection[str] = ()) -> list[Lost]:
    """Requests of a subject without a whole answer; cases in `but` are left out."""
    found = []
    for one in record.asked:
        if one.subject == subject and one.case not in but and completion_of(one.answer) is None:
            why = read(one.answer).error
            found.append(Lost(one.case, one.part, why or "an answer without a choice"))
    return found


def answered_case(record: SuiteRecord, *, but: Collection[str] = ()) -> CaseResult:
    """Was every request answered that the baseline answered, and did the engines live?"""
    ours, base = lost(record, "speculative", but=but), lost(record, "baseline", but=but)
    crashed = tuple(dict.fromkeys(h.subject for h in record.health if not h.healthy))
    sent = sum(one.subject == "speculative" and one.case not in but for one in record.asked)
    shown = "; ".join(f"{one.case} {one.part}: {one.why}" for one in ours[:FAILURES_SHOWN])
    seen = f"speculative: {len(ours)} of {sent} requests failed, baseline: {len(base)}"
    status = CaseStatus.PASS
    if crashed:
        status = CaseStatus.CRASHED
    elif ours and base:
        status = CaseStatus.BOTH_FAIL
    elif ours:
        status = CaseStatus.FAIL
    elif base:
        # Not a finding about speculation, and nothing that a verdict may be silent about.
        status = CaseStatus.CANNOT_TELL
    if not sent:
        status = CaseStatus.NOT_RUN
    return CaseResult(
        case="answered",
        status=status,
        must="every request is answered, and the engines live",
        seen=f"{seen}; {shown}" if shown else seen,
        crashed=crashed,
    )


def label_of(record: SuiteRecord) -> str:
    """The speculative deployment's short name."""
    return deployment_from(record.speculative).label()
