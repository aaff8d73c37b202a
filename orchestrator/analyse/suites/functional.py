"""Judges the functional suite: every case on both arms, and whether their answers are the same."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from orchestrator.analyse.divergence import Margin
from orchestrator.analyse.suites.functional_checks import CHECKS
from orchestrator.analyse.suites.functional_checks.seen import Broken, Part, Seen, divergence
from orchestrator.analyse.suites.margins import near_tie_nats, recorded_margins
from orchestrator.plan.deployment import deployment_from
from orchestrator.ports import Answer, Ask
from orchestrator.run.suites.functional import MODELS, NAME, OPENING, Case, cases_for
from orchestrator.run.suites.openai import Said, read
from orchestrator.run.suites.partings import parting_id, same_request
from orchestrator.run.suites.record import (
    Asked,
    CaseResult,
    CaseStatus,
    Subject,
    SuiteRecord,
    SuiteResult,
)

_SAYS_SO = re.compile(
    r"not (yet |currently )?(supported|implemented|available)|unsupported|does not support"
    r"|unrecognized|unknown (field|param)|extra inputs|only (valid|supported)|requires? "
    r"|must be set|is disabled|not enabled",
    re.IGNORECASE,
)
_REFUSALS = (400, 404, 405, 422, 501)


@dataclass(frozen=True)
class _State:
    """What a case came to on one subject."""

    status: CaseStatus
    seen: str


def judge_functional(record: SuiteRecord) -> SuiteResult:
    """The compatibility of one pair.

    `ok` is None when not one case could be judged; time that ran out leaves `not run` cases, which
    are no pass.
    """
    judging = _Judging(record)
    found = tuple(judging.case(case) for case in cases_for(record.baseline["engine"]))
    counts: dict[CaseStatus, int] = defaultdict(int)
    for case in found:
        counts[case.status] += 1
    judged = [case for case in found if case.status is not CaseStatus.NOT_RUN]
    result = SuiteResult(
        suite=NAME,
        pair_key=record.pair_key,
        label=deployment_from(record.speculative).label(),
        verdict="",
        ok=None,
        cases=found,
        metrics={
            "cases": float(len(found)),
            **({"pass_fraction": counts[CaseStatus.PASS] / len(judged)} if judged else {}),
        },
        notes=record.notes,
        complete=record.complete,
        simulated=record.simulated,
    )
    findings = len(result.findings)
    verdict = (
        f"{findings} findings in {len(judged)} cases"
        if findings != 1
        else (f"1 finding in {len(judged)} cases")
    )
    if not findings:
        passed = counts[CaseStatus.PASS]
        verdict = f"compatible: {passed} of {len(judged)} cases pass in both arms"
        verdict = verdict if judged else "nothing could be judged"
    return SuiteResult(
        **{
            **{name: getattr(result, name) for name in result.__dataclass_fields__},
            "verdict": verdict,
            "ok": (findings == 0) if judged else None,
        }
    )


class _Judging:
    def __init__(self, record: SuiteRecord) -> None:
        self._by: dict[tuple[str, Subject], list[Asked]] = defaultdict(list)
        for asked in record.asked:
            self._by[asked.case, asked.subject].append(asked)
        self._dead: dict[str, list[Subject]] = defaultdict(list)
        for state in record.health:
            if not state.healthy:
                self._dead[state.case].append(state.subject)
        self._near = near_tie_nats(record)
        self._margins = recorded_margins(record, "speculative", self._near)
        self._parts_at_ties = any(m.is_tie(self._near) for m in self._margins.values())
        self._openings = {s: self._opening(s) for s in ("baseline", "speculative")}

    def case(self, case: Case) -> CaseResult:
        baseline, speculative = self._state(case, "baseline"), self._state(case, "speculative")
        crashed = tuple(self._dead.get(case.name, ()))
        status, seen = _together(baseline, speculative)
        if status is CaseStatus.PASS:
            parted = self._partings(case, "speculative")
            if parted:
                status, seen = self._beside_the_floor(case, parted)
        if crashed:
            status = CaseStatus.CRASHED
            seen = f"the {' and the '.join(crashed)} engine died; {seen}"
        result = CaseResult(case.name, status, case.must, seen, crashed)
        if result.status in (CaseStatus.PASS, CaseStatus.NOT_RUN):
            return result
        return CaseResult(case.name, status, case.must, seen, crashed, self._reproduction(case))

    def _state(self, case: Case, subject: Subject) -> _State:
        asked = self._by.get((case.name, subject), [])
        if not asked:
            ran = (OPENING, subject) in self._by and any(
                (other, subject) in self._by for other in self._later(case)
            )
            if ran:
                return _State(CaseStatus.UNSUPPORTED, "the server does not tell token ids")
            return _State(CaseStatus.NOT_RUN, "not asked")
        parts: dict[str, Part] = {}
        for one in asked:
            said = read(one.answer)
            if said.error is not None:
                return _refused(one.answer, f"{one.part}: {said.error}")
            parts[one.part] = Part(one.part, orjson.loads(one.ask.body), said)
        seen = Seen(parts, *self._openings[subject])
        try:
            return _State(CaseStatus.PASS, CHECKS[case.check](seen))
        except Broken as broken:
            return _State(CaseStatus.FAIL, str(broken))

    def _later(self, case: Case) -> list[str]:
        """Cases that were put to somebody after this one would have been."""
        names = list(dict.fromkeys(name for name, _ in self._by))
        known = [c.name for c in cases_for({"enable_auto_tool_choice": True, "lora_modules": True})]
        return [n for n in names if n in known and known.index(n) > known.index(case.name)]

    def _partings(self, case: Case, subject: Subject) -> dict[str, str]:
        """Part by part, where the subject's greedy answers part from the baseline's."""
        theirs = {a.part: a for a in self._by.get((case.name, "baseline"), [])}
        found: dict[str, str] = {}
        for mine in self._by.get((case.name, subject), []):
            other = theirs.get(mine.part)
            if other is None or orjson.loads(mine.ask.body).get("temperature") != 0:
                continue
            if not same_request(mine, other):
                continue
            said, base = read(mine.answer), read(other.answer)
            place = divergence(said, base)
            if said.first.tool_calls != base.first.tool_calls and _arguments(said) != _arguments(
                base
            ):
                found[mine.part] = f"{mine.part}: other arguments"
            elif place is not None:
                found[mine.part] = f"{mine.part} parts from the baseline's at {place}"
        return found

    def _beside_the_floor(self, case: Case, parted: Mapping[str, str]) -> tuple[CaseStatus, str]:
        """A tie of the target is no fault: the same engine, asked in another batch, may take either
        of two tokens. Nor is what the baseline relaunched does as well."""
        ties = {part: tie for part in parted if (tie := self._tie(case, part)) is not None}
        left = [text for part, text in parted.items() if part not in ties]
        if not left:
            part, tie = next(iter(ties.items()))
            return CaseStatus.PASS, f"{parted[part]}, at a tie of the target: {tie}"
        if not self._by.get((case.name, "baseline_again")):
            return CaseStatus.DIFFERS, f"{left[0]}; no relaunched baseline to hold it against"
        floor = self._partings(case, "baseline_again")
        if floor:
            own = next(iter(floor.values()))
            return CaseStatus.PASS, f"{left[0]}, but so does the baseline relaunched ({own})"
        if self._parts_at_ties and not any(self._margin(case, p) for p in parted if p not in ties):
            why = "the arms part at ties elsewhere; whether here is not known"
            return CaseStatus.CANNOT_TELL, f"{left[0]}; {why}"
        return CaseStatus.DIFFERS, f"{left[0]}; the baseline relaunched says the same as before"

    def _margin(self, case: Case, part: str) -> Margin | None:
        return self._margins.get(parting_id(case.name, part))

    def _tie(self, case: Case, part: str) -> str | None:
        """How near two tokens were where the answers part; None: not a tie, or not known."""
        margin = self._margin(case, part)
        if margin is None or not margin.is_tie(self._near):
            return None
        return f"{margin.nats:+.3g} nats between the two tokens"

    def _reproduction(self, case: Case) -> str | None:
        asked = self._by.get((case.name, "speculative"), [])
        if not asked:
            return None
        if case.in_flight == 1:
            return curl(asked[0].ask)
        return "\n".join([*(f"{curl(one.ask)} &" for one in asked), "wait"])

    def _opening(self, subject: Subject) -> tuple[Said, int | None]:
        said = [read(asked.answer) for asked in self._by.get((OPENING, subject), [])]
        limit = None
        for asked in self._by.get((MODELS, subject), []):
            if asked.answer.status == 200:
                served: Mapping[str, list[Mapping[str, int]]] = orjson.loads(asked.answer.body)
                limit = (served.get("data") or [{}])[0].get("max_model_len")
        return (said[0] if said else Said(), limit)


def curl(ask: Ask) -> str:
    """The request as a command line; the server's address is to be put in."""
    body = shlex.quote(ask.body.decode("utf-8", "replace"))
    return f'curl -sS "$SPECULATIVE{ask.path}" -H "Content-Type: application/json" -d {body}'


def _together(baseline: _State, speculative: _State) -> tuple[CaseStatus, str]:
    """One status of the two: findings are only where speculation is worse."""
    if CaseStatus.NOT_RUN in (baseline.status, speculative.status):
        return CaseStatus.NOT_RUN, "not asked of both arms"
    fine, bad = CaseStatus.PASS, CaseStatus.FAIL
    if speculative.status is fine:
        better = "" if baseline.status is fine else f"; the baseline does not: {baseline.seen}"
        return fine, speculative.seen + better
    if speculative.status is CaseStatus.UNSUPPORTED:
        if baseline.status is fine:
            return CaseStatus.REFUSED, f"{speculative.seen}; the baseline answers"
        if baseline.status is CaseStatus.UNSUPPORTED:
            return CaseStatus.UNSUPPORTED, speculative.seen
    if baseline.status is fine:
        return bad, f"{speculative.seen}; the baseline does it"
    return CaseStatus.BOTH_FAIL, f"speculative: {speculative.seen}; baseline: {baseline.seen}"


def _refused(answer: Answer, error: str) -> _State:
    """A refusal is the server's word that it cannot; anything else is a failure."""
    refuses = answer.status in _REFUSALS or (
        answer.status is not None and _SAYS_SO.search(error) is not None
    )
    return _State(CaseStatus.UNSUPPORTED if refuses else CaseStatus.FAIL, error)


def _arguments(said: Said) -> list[str]:
    return [str(call["function"]["arguments"]) for call in said.first.tool_calls]
