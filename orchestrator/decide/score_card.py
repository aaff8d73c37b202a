"""The eight dimensions: each measured, not measured, or failed, with its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.decide.conditions import control_state, ids
from orchestrator.decide.cost import costs
from orchestrator.decide.device import device_name, engine_names
from orchestrator.decide.message import Message, said, spoken
from orchestrator.decide.standing import Standing, cell_at, standing_in, told
from orchestrator.decide.suites import of_suite, suite_said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.run.suites.record import SuiteResult


class Status(StrEnum):
    MEASURED = "measured"
    NOT_MEASURED = "not measured"
    FAILED = "failed"


@dataclass(frozen=True)
class Dimension:
    """One line of the card. "Measured" says that there is an answer, not that it is a good one:
    `summary` says which."""

    name: str
    status: Status
    summary: Message
    evidence: tuple[str, ...] = ()
    """Trial ids."""
    suites: tuple[str, ...] = field(default=())
    """Names of the suites it rests on."""


def score_card(result: SweepResult) -> tuple[Dimension, ...]:
    """The eight dimensions in the order of the evaluation plan."""
    return tuple(
        rule(result)
        for rule in (
            _suites_rule("functional_completeness", ("functional",)),
            _suites_rule("effectiveness", ("quality", "losslessness")),
            _performance,
            _suites_rule("stability", ("soak",), also=("boundary",)),
            _usability,
            _compatibility,
            _suites_rule("observability", ("observability",)),
            _cost,
        )
    )


def _suites_rule(
    name: str, suites: tuple[str, ...], also: tuple[str, ...] = ()
) -> Callable[[SweepResult], Dimension]:
    """Failed: any of them found speculation worse. Measured: one of `suites` ended; those in `also`
    speak for a part only. What ran but did not yield enough is not measured."""

    def rule(result: SweepResult) -> Dimension:
        found = [suite for each in (*suites, *also) for suite in of_suite(result, each)]
        failed = [suite for suite in found if suite.ok is False or suite.findings]
        ended = [suite for suite in found if suite.ok and suite.complete]
        used = failed or ended or found
        keys = {suite.pair_key for suite in used}
        trials = [trial for trial in result.trials if trial.trial.pair.key in keys]
        if failed:
            status = Status.FAILED
        elif any(suite.suite in suites for suite in ended):
            status = Status.MEASURED
        else:
            status = Status.NOT_MEASURED
        return Dimension(
            name,
            status,
            said("card.suites", verdicts=tuple(map(_verdict, used)))
            if used
            else said("card.suite_not_run", suites=tuple(map(suite_said, suites))),
            ids(trials),
            tuple(dict.fromkeys(suite.suite for suite in used)),
        )

    return rule


def _verdict(suite: SuiteResult) -> Message:
    return said(
        "card.suite_of",
        suite=suite_said(suite.suite),
        label=suite.label,
        verdict=spoken(suite.verdict),
    )


def _performance(result: SweepResult) -> Dimension:
    """Failed: nothing valid came of any trial, or the A/A control failed."""
    cells = [cell_at(result, trial) for trial in result.trials]
    measured = [c for c in cells if c.standing is not Standing.MISSING]
    evidence = ids(c.result for c in measured)
    if not cells:
        return Dimension("performance", Status.NOT_MEASURED, said("card.no_trials"))
    if not measured:
        if any(trial.failed for trial in result.trials):
            every = ids(result.trials)
            return Dimension("performance", Status.FAILED, said("card.all_failed"), every)
        return Dimension("performance", Status.NOT_MEASURED, said("card.no_trials"))
    if control_state(result) == "failed":
        controls = ids(result.controls)
        return Dimension("performance", Status.FAILED, said("card.control_failed"), controls)
    summary = said(
        "card.performance",
        told=len(told(cells)),
        cells=len(cells),
        faster=len(standing_in(cells, Standing.FASTER)),
        slower=len(standing_in(cells, Standing.SLOWER)),
        equal=len(standing_in(cells, Standing.EQUAL)),
    )
    return Dimension("performance", Status.MEASURED, summary, evidence)


def _usability(result: SweepResult) -> Dimension:
    """Start-up, number of flags, extra artifacts, errors met: recorded facts of each deployment."""
    facts: list[Message] = []
    evidence: list[str] = []
    for cost in costs(result):
        trials = [t for t in result.trials if t.trial.pair.key == cost.pair_key]
        speculation = trials[0].trial.pair.speculative.speculation
        start = cost.needs["speculative"].start_s
        if speculation is None or start is None:
            continue
        base = cost.needs["baseline"].start_s
        failed = [t for t in trials if t.failed and t.outcome is not None]
        facts.append(
            said(
                "card.usability",
                draft=cost.draft,
                flags=2 + len(speculation.options) + (speculation.draft is not None),
                artifacts=0 if speculation.draft is None else 1,
                start_s=start,
                baseline_start_s=said("value.unknown") if base is None else round(base),
                errors=tuple(dict.fromkeys(str(t.outcome.failure) for t in failed if t.outcome)),
            )
        )
        evidence += ids(trials)
    if not facts:
        return Dimension("usability", Status.NOT_MEASURED, said("card.no_engine"))
    summary = said("card.each", each=tuple(facts))
    return Dimension("usability", Status.MEASURED, summary, tuple(evidence))


def _compatibility(result: SweepResult) -> Dimension:
    """One sweep speaks for its own device and way of serving; others are named as not measured."""
    device = device_name(result.manifest.get("environment") or {})
    ran = [trial for trial in result.every if trial.valid_pairs]
    if result.simulated or device is None or not ran:
        return Dimension("compatibility", Status.NOT_MEASURED, said("card.no_device"))
    attached = result.manifest["experiment"].get("attach") is not None
    summary = said(
        "card.compatibility",
        device=spoken(device),
        engines=engine_names(ran),
        how=said("card.attached" if attached else "card.served"),
    )
    return Dimension("compatibility", Status.MEASURED, summary, ids(ran))


def _cost(result: SweepResult) -> Dimension:
    found = [(cost, at) for cost in costs(result) for at in cost.at if at.cost_ratio is not None]
    if not found:
        return Dimension("cost", Status.NOT_MEASURED, said("card.no_cost"))
    priced = any(cost.device_hour is not None for cost, _ in found)
    cheaper = sum(at.cheaper is True for _, at in found)
    dearer = sum(at.cheaper is False for _, at in found)
    summary = said(
        "card.cost" if priced else "card.cost_without_price",
        cells=len(found),
        cheaper=cheaper,
        dearer=dearer,
    )
    return Dimension("cost", Status.MEASURED, summary, tuple(at.trial_id for _, at in found))
