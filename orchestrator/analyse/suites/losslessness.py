"""Is the output the target's own? Greedy answers and samples of both arms decide together."""

from __future__ import annotations

from typing import Any

from orchestrator.analyse.agreement import Agreement, agreement
from orchestrator.analyse.divergence import Cause, Divergence
from orchestrator.analyse.losslessness import (
    Floor,
    FloorComparison,
    Losslessness,
    LosslessnessReport,
    losslessness,
)
from orchestrator.analyse.suites.margins import near_tie_nats, recorded_margins
from orchestrator.analyse.suites.recorded import answered_case, answers, asked_in, label_of
from orchestrator.analyse.suites.reproduction import reproduction
from orchestrator.analyse.suites.sampled import Sampled, judge_samples
from orchestrator.run.suites.losslessness import AGAIN, BATCHED, GREEDY, PROBE
from orchestrator.run.suites.record import CaseResult, CaseStatus, Subject, SuiteRecord, SuiteResult

OFFENDING_SHOWN = 10
_STATUS = {
    Losslessness.LOSSLESS: CaseStatus.PASS,
    Losslessness.EQUAL_UP_TO_TIES: CaseStatus.PASS,
    Losslessness.NOT_LOSSLESS: CaseStatus.FAIL,
    Losslessness.CANNOT_TELL: CaseStatus.CANNOT_TELL,
}


def judge_losslessness(record: SuiteRecord) -> SuiteResult:
    """One of four verdicts, over temperature 0 and above.

    Rules, the first that applies:
        1. not lossless at temperature 0, or another distribution above it: not lossless
        2. cannot tell at temperature 0, or above it, or nothing was drafted: cannot tell
        3. the verdict at temperature 0 (lossless, or equal up to ties)
    """
    report = greedy_report(record)
    sampled = judge_samples(record)
    verdict, why = _together(record, report, sampled)
    notes = (*why, *report.reasons, *sampled.notes, *record.notes)
    return SuiteResult(
        suite=record.suite,
        pair_key=record.pair_key,
        label=label_of(record),
        verdict=verdict.value,
        ok={CaseStatus.PASS: True, CaseStatus.FAIL: False}.get(_STATUS[verdict]),
        cases=(
            answered_case(record, but=(PROBE,)),
            _greedy_case(report),
            *_floor_cases(report),
            *_offending_cases(record, report),
            *sampled.cases,
        ),
        metrics=_metrics(report) | sampled.metrics,
        notes=tuple(dict.fromkeys(notes)),
        complete=record.complete,
        simulated=record.simulated,
    )


def greedy_report(record: SuiteRecord) -> LosslessnessReport:
    """Agreement at temperature 0 beside both floors, every divergence triaged where it can be."""
    baseline = answers(record, GREEDY, "baseline")
    ours = [*answers(record, GREEDY, "speculative"), *answers(record, BATCHED, "speculative")]
    near = near_tie_nats(record)
    floors = []
    again = answers(record, AGAIN, "baseline_again")
    if again:
        relaunched = agreement(baseline, again, name="baseline relaunched")
        floors.append(Floor(relaunched, True, recorded_margins(record, "relaunched", near)))
    beside: Subject = "baseline_again" if again else "baseline"
    batched = answers(record, BATCHED, beside)
    if batched:
        other = agreement(baseline, batched, name="baseline in a batch")
        floors.append(Floor(other, False, recorded_margins(record, "other batch", near)))
    return losslessness(
        agreement(baseline, ours, name="speculative"),
        floors,
        margins=recorded_margins(record, "speculative", near),
        near_tie_nats=near,
    )


def _together(
    record: SuiteRecord, report: LosslessnessReport, sampled: Sampled
) -> tuple[Losslessness, list[str]]:
    verdicts = (report.verdict, *sampled.verdicts.values())
    if Losslessness.NOT_LOSSLESS in verdicts:
        return Losslessness.NOT_LOSSLESS, []
    drafted = record.extra.get("drafting", {}).get(GREEDY, {})
    if drafted.get("drafts") == 0:
        return Losslessness.CANNOT_TELL, [
            "nothing was drafted: speculation was not put to the test"
        ]
    why = []
    if drafted.get("drafts") and drafted.get("accepted_tokens") == 0:
        why.append("not one drafted token was accepted at temperature 0: only rejection was tested")
    if Losslessness.CANNOT_TELL in verdicts:
        return Losslessness.CANNOT_TELL, why
    return report.verdict, why


def _greedy_case(report: LosslessnessReport) -> CaseResult:
    agreed = report.agreement
    counts = {cause.value: report.count(cause) for cause in Cause}
    rate = "-" if agreed.exact_match_rate is None else f"{agreed.exact_match_rate:.1%}"
    causes = ", ".join(f"{n} {cause}" for cause, n in counts.items() if n)
    return CaseResult(
        case="temperature 0",
        status=_STATUS[report.verdict],
        must=(
            "token for token the baseline's answer, but for ties of the target "
            f"(within {report.near_tie_nats:g} nats)"
        ),
        seen=f"{rate} of {len(agreed.prompts)} prompts equal"
        + (f"; divergences: {causes}" if causes else ""),
        evidence={
            "verdict": report.verdict.value,
            "near_tie_nats": report.near_tie_nats,
            "level": report.level,
            "divergences": [_as_dict(divergence) for divergence in report.divergences],
        },
    )


def _floor_cases(report: LosslessnessReport) -> list[CaseResult]:
    """The baseline against itself: shown beside the arm, never a finding."""
    return [
        CaseResult(
            case=floor.name,
            status=CaseStatus.PASS,
            must="nothing: how much the baseline differs from itself",
            seen=f"{_share(floor)} of its prompts equal; only the speculative arm parts on "
            f"{floor.only_speculative}, only this one on {floor.only_floor} "
            f"(p = {floor.p_value:.2g}, {floor.test})",
        )
        for floor in report.floors
    ]


def _share(floor: FloorComparison) -> str:
    return "-" if floor.exact_match_rate is None else f"{floor.exact_match_rate:.1%}"


def _offending_cases(record: SuiteRecord, report: LosslessnessReport) -> list[CaseResult]:
    asks = {one.part: one for case in (BATCHED, GREEDY)
            for one in asked_in(record, case, "speculative")}  # fmt: skip
    return [
        CaseResult(
            case=f"temperature 0: {divergence.prompt_id}",
            status=CaseStatus.DIFFERS,
            must="the baseline's answer",
            seen=_seen(divergence, asks[divergence.prompt_id].case),
            reproduce=both_arms(reproduction(asks[divergence.prompt_id])),
            evidence=_as_dict(divergence),
        )
        for divergence in report.offending[:OFFENDING_SHOWN]
    ]


def both_arms(command: str) -> str:
    """One line that puts a request to both servers, whose addresses the reader sets."""
    return f'for URL in "$BASELINE" "$SPECULATIVE"; do {command}; echo; done'


def _seen(divergence: Divergence, case: str) -> str:
    at = divergence.agreement.first_divergence
    where = "the text" if at is None else f"{divergence.agreement.unit} {at}"
    batch = " (asked in a batch)" if case == BATCHED else ""
    return f"parts at {where}: {divergence.why}{batch}"


def _as_dict(divergence: Divergence) -> dict[str, Any]:
    agreed, margin = divergence.agreement, divergence.margin
    return {
        "prompt": divergence.prompt_id,
        "cause": divergence.cause.value,
        "why": divergence.why,
        "unit": agreed.unit,
        "first_divergence": agreed.first_divergence,
        "baseline": agreed.baseline_at,
        "speculative": agreed.other_at,
        "margin_nats": None if margin is None else margin.nats,
    }


def _metrics(report: LosslessnessReport) -> dict[str, float]:
    agreed: Agreement = report.agreement
    found: dict[str, float | None] = {
        "exact_match_rate": agreed.exact_match_rate,
        "divergences_per_1k_tokens": agreed.divergences_per_1k_tokens,
        "greedy_prompts": float(len(agreed.prompts)),
    }
    for floor in report.floors:
        name = "relaunched" if floor.same_batch else "other_batch"
        found[f"exact_match_rate_{name}"] = floor.exact_match_rate
    for cause in Cause:
        found[f"divergences_{cause.value.replace(' ', '_')}"] = float(report.count(cause))
    return {name: value for name, value in found.items() if value is not None}
