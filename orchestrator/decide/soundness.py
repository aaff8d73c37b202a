"""Quality and stability: what the suites, the trials' ends and their pairs say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator.decide.conclusion import Conclusion, Kind, Tone
from orchestrator.decide.conditions import conditions_of, ids
from orchestrator.decide.message import Value, said, spoken
from orchestrator.decide.suites import of_suite, suite_said, suites_of
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.run.suites.record import SuiteResult

SOAK = "soak"


def quality(result: SweepResult) -> Iterator[Conclusion]:
    """One conclusion a suite and deployment; what was not run is said as well."""
    for suite in suites_of(result):
        if suite.suite != SOAK:
            yield _suite(result, suite, Kind.QUALITY)
    missing = [name for name in ("functional", "quality", "boundary") if not of_suite(result, name)]
    if missing and result.trials:
        yield Conclusion(
            kind=Kind.QUALITY,
            key="quality.not_measured",
            tone="unknown",
            conditions=conditions_of(result, result.trials),
            values={"suites": tuple(map(suite_said, missing))},
        )


def _suite(result: SweepResult, suite: SuiteResult, kind: Kind) -> Conclusion:
    findings = suite.findings
    values: dict[str, Value] = {
        "suite": suite_said(suite.suite),
        "draft": suite.label,
        "verdict": spoken(suite.verdict),
        "cases": len(suite.cases),
        "findings": len(findings),
        "first": tuple(
            said("suite.first", case=case.case, seen=spoken(case.seen)) for case in findings[:3]
        ),
    }
    key, tone = _suite_rule(suite)
    trials = [t for t in result.trials if t.trial.pair.key == suite.pair_key]
    return Conclusion(
        kind=kind,
        key=key,
        tone=tone,
        conditions=conditions_of(result, trials),
        values=values,
        evidence=ids(trials),
        not_measured=() if suite.complete else (said("gap.suite_incomplete"),),
    )


def _suite_rule(suite: SuiteResult) -> tuple[str, Tone]:
    if suite.ok is False:
        return "suite.findings", "against"
    if suite.ok is None:
        return "suite.not_enough", "unknown"
    # A suite that calls itself sound but lists findings contradicts itself: the findings count.
    if suite.findings:
        return "suite.contradictory", "warning"
    return ("suite.held" if suite.complete else "suite.held_so_far"), "for"


def stability(result: SweepResult) -> Iterator[Conclusion]:
    """The soak, drift within trials, failed trials, pairs that do not count."""
    soaks = of_suite(result, SOAK)
    for suite in soaks:
        yield _suite(result, suite, Kind.STABILITY)
    if not soaks and result.trials:
        yield Conclusion(
            kind=Kind.STABILITY,
            key="stability.not_measured",
            tone="unknown",
            conditions=conditions_of(result, result.trials),
            values={"minutes": measured_s(result) / 60},
        )
    drifting = [
        trial
        for trial in result.every
        if trial.pairs and (drift := result.decision(trial).trend.drift) and drift.present
    ]
    if drifting:
        yield _of_trials(result, "stability.drift", drifting, {"trials": len(drifting)})
    failed = [trial for trial in result.every if trial.failed]
    if failed:
        classes = Counter(str(t.outcome.failure) for t in failed if t.outcome is not None)
        yield _of_trials(
            result,
            "stability.failed",
            failed,
            {
                "trials": len(failed),
                "of": len(result.every),
                "classes": tuple(
                    said("stability.class", failure=name, count=count)
                    for name, count in classes.most_common()
                ),
            },
        )
    invalid = [t for t in result.every if len(t.valid_pairs) < len(t.pairs)]
    if invalid:
        lost = sum(len(t.pairs) - len(t.valid_pairs) for t in invalid)
        pairs = sum(len(t.pairs) for t in result.every)
        yield _of_trials(result, "stability.invalid_pairs", invalid, {"pairs": lost, "of": pairs})


def _of_trials(
    result: SweepResult, key: str, trials: Sequence[TrialResult], values: dict[str, Value]
) -> Conclusion:
    return Conclusion(
        kind=Kind.STABILITY,
        key=key,
        tone="warning",
        conditions=conditions_of(result, trials),
        values=values,
        evidence=ids(trials),
    )


def measured_s(result: SweepResult) -> float:
    """Seconds inside measured blocks, all trials together."""
    return sum(
        pair.baseline.duration_s + pair.speculative.duration_s
        for trial in result.every
        for pair in trial.pairs
    )
