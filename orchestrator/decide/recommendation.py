"""What to deploy, if anything, and how far that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.decide.choice import confirmation_of
from orchestrator.decide.conditions import control_state
from orchestrator.decide.guard import Guard, guard_of
from orchestrator.decide.message import Message, said, spoken
from orchestrator.decide.schedule import Schedule, schedule_of, verified
from orchestrator.decide.standing import CellAt, Standing, cell_at, load_said, standing_in
from orchestrator.decide.suites import suite_said, suites_of
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Verdict
from orchestrator.plan.deployment import Deployment


class Advice(StrEnum):
    ON = "on"
    """Faster, and found so again on fresh prompts."""
    ON_UNCONFIRMED = "on, not confirmed"
    """Faster, but not (or not clearly) measured again: a candidate for a canary, no more."""
    OFF = "off"
    NOT_DECIDED = "not decided"


@dataclass(frozen=True)
class Recommendation:
    """One deployable configuration, or why there is none."""

    advice: Advice
    reason: Message
    chosen: TrialResult | None
    """The cell it was chosen for; None where nothing is to be deployed."""
    confirmation: TrialResult | None
    deployment: Deployment | None
    """What to serve: the chosen cell's, with the schedule where that was verified."""
    schedule: Schedule | None
    """What the measured cells ask for; deployed only when `schedule_verified`."""
    schedule_verified: bool | None
    guard: Guard | None


def recommend(result: SweepResult) -> Recommendation:
    """Rules, the first that applies:

    - nothing valid measured, or the A/A control failed: not decided
    - no cell is faster: off where some cell is told (slower or equal), else not decided
    - a suite found the best cell's deployment unsound: off
    - the best cell was not found faster again: off when told so, unconfirmed when not told
    """
    best = result.best
    cells = [cell_at(result, trial) for trial in result.trials]
    if all(cell.standing is Standing.MISSING for cell in cells):
        return _nothing(Advice.NOT_DECIDED, "advice.nothing_measured")
    if control_state(result) == "failed":
        return _nothing(Advice.NOT_DECIDED, "advice.control_failed")
    if best is None:
        if any(cell.standing in (Standing.SLOWER, Standing.EQUAL) for cell in cells):
            return _nothing(Advice.OFF, "advice.none_faster")
        return _nothing(Advice.NOT_DECIDED, "advice.none_told")
    unsound = [
        suite
        for suite in suites_of(result)
        if suite.pair_key == best.trial.pair.key and (suite.ok is False or suite.findings)
    ]
    cell = best.trial.cell.label()
    if unsound:
        names = tuple(
            said("card.suite_verdict", suite=suite_said(suite.suite), verdict=spoken(suite.verdict))
            for suite in unsound
        )
        return _nothing(Advice.OFF, "advice.unsound", cell=cell, suites=names)
    again = confirmation_of(result, best)
    if again is not None and again.headline.verdict not in (Verdict.FASTER, Verdict.CANNOT_TELL):
        return _nothing(Advice.OFF, "advice.not_confirmed", cell=cell)
    confirmed = again is not None and again.headline.verdict is Verdict.FASTER
    shown = again.headline if again is not None and confirmed else result.decision(best)
    schedule = schedule_of(result)
    checked = None if schedule is None else verified(result, schedule)
    return Recommendation(
        advice=Advice.ON if confirmed else Advice.ON_UNCONFIRMED,
        reason=said(
            "advice.on" if confirmed else "advice.on_unconfirmed",
            workload=best.trial.cell.workload.name,
            temperature=best.trial.cell.sampling.temperature,
            load=load_said(cell_at(result, best)),
            draft=best.trial.pair.speculative.label(),
            metric=said(f"metric.{shown.metric}"),
            elsewhere=_elsewhere([cell for cell in cells if cell.result is not best]),
            speedup=shown.speedup or 0.0,
            low=shown.low or 0.0,
            high=shown.high or 0.0,
        ),
        chosen=best,
        confirmation=again,
        deployment=(
            schedule.deployment_pair().speculative
            if schedule is not None and checked
            else best.trial.pair.speculative
        ),
        schedule=schedule,
        schedule_verified=checked,
        guard=guard_of(result, best),
    )


def _elsewhere(others: Sequence[CellAt]) -> Message:
    """What the advice does not extend to: cells that are not faster."""
    slower = len(standing_in(others, Standing.SLOWER))
    rest = len(others) - len(standing_in(others, Standing.FASTER)) - slower
    if not slower and not rest:
        return said("value.none")
    return said("advice.elsewhere", others=len(others), slower=slower, rest=rest)


def _nothing(advice: Advice, key: str, **values: Any) -> Recommendation:
    return Recommendation(advice, said(key, **values), None, None, None, None, None, None)
