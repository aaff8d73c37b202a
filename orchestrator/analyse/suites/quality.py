"""Are the answers equally good where they may differ? Figure by figure, beside the floor."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.analyse.paired_means import MeanComparison
from orchestrator.analyse.paired_outcomes import (
    Comparison,
    OutcomeComparison,
    compare_outcomes,
    majority,
    paired_counts,
)
from orchestrator.analyse.paired_ratio import RatioComparison
from orchestrator.analyse.quality import QualityReport, compare_quality
from orchestrator.analyse.suites.recorded import (
    answered_case,
    answers,
    asked_in,
    cases_of,
    label_of,
)
from orchestrator.run.suites.completion import completion_of
from orchestrator.run.suites.embedding import NOT_AVAILABLE
from orchestrator.run.suites.quality import ANSWERS, TASKS
from orchestrator.run.suites.record import CaseResult, CaseStatus, Subject, SuiteRecord, SuiteResult

MARGIN = 0.05
"""What makes no practical difference: shares and scores by 0.05, lengths by 5 %."""
EQUALITY_LEVEL = 0.05
DIFFERENCE_LEVEL = 0.01
"""Chance of any figure called worse between equal arms, over everything a record holds."""
AGAINST_FLOOR = ("off_language", "kept_information", "similarity")
"""Figures that compare an answer with the baseline's: their baseline column is the floor."""
Compared = OutcomeComparison | MeanComparison | RatioComparison


@dataclass(frozen=True, slots=True)
class _Figure:
    name: str
    arms: Compared
    floor: Compared | None
    """The baseline against itself relaunched."""
    bad: tuple[Comparison, ...]

    @property
    def status(self) -> CaseStatus:
        if self.arms.comparison is Comparison.CANNOT_TELL:
            return CaseStatus.CANNOT_TELL
        if self.arms.comparison not in self.bad:
            return CaseStatus.PASS
        # The baseline changes that much by itself: nothing can be laid at speculation's door.
        if self.floor is not None and self.floor.comparison is self.arms.comparison:
            return CaseStatus.CANNOT_TELL
        return CaseStatus.FAIL


def judge_quality(record: SuiteRecord) -> SuiteResult:
    """Every figure is judged on its own; the worst decides.

    Rules: a figure is worse, and the baseline is not so against itself: worse; every figure within
    the margin: equally good; else no difference found (and what could not be decided is listed).
    """
    cases = [answered_case(record)]
    metrics: dict[str, float] = {}
    blocks = max(1, len(cases_of(record, ANSWERS)) + len(cases_of(record, TASKS)))
    for case in cases_of(record, ANSWERS):
        for figure in _answer_figures(record, case, DIFFERENCE_LEVEL / blocks):
            _add(cases, metrics, case, figure)
        if not record.extra.get("similarity", {}).get(case):
            cases.append(_not_available(case))
    for case in cases_of(record, TASKS):
        by_arm = _passed(record, case)
        _add(cases, metrics, case, _task_figure(by_arm, DIFFERENCE_LEVEL / blocks))
        metrics |= _shares_by_kind(by_arm, case)
    verdict, ok = _verdict(cases)
    return SuiteResult(
        suite=record.suite,
        pair_key=record.pair_key,
        label=label_of(record),
        verdict=verdict,
        ok=ok,
        cases=tuple(cases),
        metrics=metrics,
        notes=record.notes,
        complete=record.complete,
        simulated=record.simulated,
    )


def _verdict(cases: list[CaseResult]) -> tuple[str, bool | None]:
    worse = [c.case for c in cases if c.status in (CaseStatus.FAIL, CaseStatus.CRASHED)]
    if worse:
        return f"worse: {', '.join(worse)}", False
    if len(cases) > 1 and all(c.status is CaseStatus.PASS for c in cases):
        return "equally good", True
    undecided = sum(c.status is not CaseStatus.PASS for c in cases)
    return f"no difference found ({undecided} of {len(cases)} undecided)", None


def _answer_figures(record: SuiteRecord, case: str, level: float) -> Iterator[_Figure]:
    baseline, ours = answers(record, case, "baseline"), answers(record, case, "speculative")
    again = answers(record, case, "baseline_again")
    similarity = record.extra.get("similarity", {}).get(case, {})
    near, near_again = similarity.get("speculative", {}), similarity.get("baseline_again", {})
    rng = np.random.default_rng(zlib.crc32(f"{record.pair_key} {case}".encode()))
    arms = compare_quality(
        baseline, ours, rng, relaunched=again,
        similarity={p: (near_again[p], near[p]) for p in near if p in near_again},
        failed=(_failed(record, case, "baseline"), _failed(record, case, "speculative")),
        margin=MARGIN, level=EQUALITY_LEVEL, difference_level=level,
    )  # fmt: skip
    floor = None
    if again:
        floor = compare_quality(
            baseline, again, rng,
            failed=(_failed(record, case, "baseline"), _failed(record, case, "baseline_again")),
            margin=MARGIN, level=EQUALITY_LEVEL, difference_level=level,
        )  # fmt: skip
    yield from _figures(arms, floor)


def _figures(arms: QualityReport, floor: QualityReport | None) -> Iterator[_Figure]:
    for name, rate in arms.rates.items():
        beside = None if floor is None else floor.rates.get(name)
        yield _Figure(name, rate, beside, (Comparison.HIGHER,))
    for name, score in arms.scores.items():
        own = None if floor is None else floor.scores.get(name)
        yield _Figure(name, score, own, (Comparison.LOWER,))
    either = (Comparison.LOWER, Comparison.HIGHER)
    yield _Figure("lengths", arms.lengths, None if floor is None else floor.lengths, either)
    own_ratio = None if floor is None else floor.compression
    yield _Figure("compression", arms.compression, own_ratio, (Comparison.HIGHER,))


def _failed(record: SuiteRecord, case: str, subject: Subject) -> dict[str, bool]:
    """By prompt: whether most of its requests were not answered."""
    failures: dict[str, list[bool]] = defaultdict(list)
    for one in asked_in(record, case, subject):
        failures[one.part].append(completion_of(one.answer) is None)
    return {prompt: 2 * sum(found) > len(found) for prompt, found in failures.items()}


def _passed(record: SuiteRecord, case: str) -> dict[str, dict[str, bool | None]]:
    """By subject and task: the majority over the repeats that could be checked."""
    checked: Mapping[str, Mapping[str, list[bool | None]]]
    checked = record.extra.get("checked", {}).get(case, {})
    return {
        subject: {
            task: majority(one for one in repeats if one is not None)
            for task, repeats in tasks.items()
        }
        for subject, tasks in checked.items()
    }


def _task_figure(by_arm: Mapping[str, Mapping[str, bool | None]], level: float) -> _Figure:
    baseline, again = by_arm.get("baseline", {}), by_arm.get("baseline_again")
    return _Figure(
        "passed",
        _compared(baseline, by_arm.get("speculative", {}), level),
        None if again is None else _compared(baseline, again, level),
        (Comparison.LOWER,),
    )


def _compared(
    a: Mapping[str, bool | None], b: Mapping[str, bool | None], level: float
) -> OutcomeComparison:
    counts = paired_counts(a, b)
    usual = compare_outcomes(counts, margin=MARGIN, level=EQUALITY_LEVEL)
    if usual.comparison in (Comparison.HIGHER, Comparison.LOWER):
        return compare_outcomes(counts, margin=MARGIN, level=level)
    return usual


def _shares_by_kind(by_arm: Mapping[str, Mapping[str, bool | None]], case: str) -> dict[str, float]:
    """Share of tasks passed, by kind and subject; too few of a kind to judge it alone."""
    found = {}
    for subject, tasks in by_arm.items():
        kinds: dict[str, list[bool]] = defaultdict(list)
        for task, passed in tasks.items():
            if passed is not None:
                kinds[task.rsplit("-", 1)[0]].append(passed)
        for kind, outcomes in kinds.items():
            name = f"passed_{kind}_{subject}_t{case.removeprefix(TASKS)}"
            found[name] = sum(outcomes) / len(outcomes)
    return found


def _add(cases: list[CaseResult], metrics: dict[str, float], case: str, figure: _Figure) -> None:
    arms, floor = _values(figure.arms), None if figure.floor is None else _values(figure.floor)
    temperature = case.removeprefix(ANSWERS).removeprefix(TASKS)
    suffix = f"t{temperature}"
    if figure.name in AGAINST_FLOOR:
        floor = None
    for name, value in (("baseline", arms["baseline"]), ("speculative", arms["speculative"])):
        if value is not None:
            metrics[f"{figure.name}_{name}_{suffix}"] = value
    if floor is not None and floor["speculative"] is not None:
        metrics[f"{figure.name}_baseline_again_{suffix}"] = floor["speculative"]
    cases.append(
        CaseResult(
            case=f"{case}: {figure.name}",
            status=figure.status,
            must=f"no worse than the baseline by more than {MARGIN:g}, seen over pairs",
            seen=_seen(figure, arms, floor),
            evidence={
                "comparison": figure.arms.comparison.value,
                "arms": arms,
                "baseline_again": floor,
            },
        )
    )


def _seen(figure: _Figure, arms: dict[str, Any], floor: dict[str, Any] | None) -> str:
    own = "baseline again" if figure.name in AGAINST_FLOOR else "baseline"
    text = (
        f"{own} {_number(arms['baseline'])}, speculative {_number(arms['speculative'])}, "
        f"{arms['what']} {_number(arms['effect'])} [{_number(arms['low'])}, "
        f"{_number(arms['high'])}] over {arms['pairs']} prompts: {figure.arms.comparison}"
    )
    if floor is not None:
        text += (
            f"; baseline against itself: {arms['what']} {_number(floor['effect'])} "
            f"[{_number(floor['low'])}, {_number(floor['high'])}]"
        )
    return text


def _values(compared: Compared) -> dict[str, Any]:
    if isinstance(compared, OutcomeComparison):
        pairs, what, effect = compared.counts.pairs, "difference", compared.difference
        mine, its = compared.baseline_share, compared.speculative_share
    else:
        pairs = compared.prompts
        mine, its = compared.baseline_mean, compared.speculative_mean
        if isinstance(compared, RatioComparison):
            what, effect = "ratio", compared.ratio
        else:
            what, effect = "difference", compared.difference
    return {
        "baseline": mine, "speculative": its, "what": what, "effect": effect,
        "low": compared.low, "high": compared.high, "p_value": compared.p_value,
        "pairs": pairs, "level": compared.level,
    }  # fmt: skip


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _not_available(case: str) -> CaseResult:
    return CaseResult(
        case=f"{case}: similarity",
        status=CaseStatus.NOT_RUN,
        must="no farther from the baseline's answer than the baseline itself, relaunched",
        seen=NOT_AVAILABLE,
    )
