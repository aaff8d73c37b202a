"""What a token costs in each arm, and from where the draft pays for itself.

Relative cost needs no price: both arms stand on the same devices. Money appears only with a price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analyse.break_even_load import BreakEven, break_even_load
from orchestrator.analyse.interval import repeated_interval
from orchestrator.analyse.look_plan import look_plan
from orchestrator.analyse.pairs import Pair
from orchestrator.analyse.rung import Estimate, Rung
from orchestrator.decide.resources import Needs, by_deployment, needs
from orchestrator.decide.standing import Standing, cell_at
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.plan.arms import engine_parallelism
from orchestrator.plan.ladder import ladder_key
from orchestrator.plan.trial import LoadPoint
from orchestrator.records import ARMS, Arm
from orchestrator.spec.goals import Cost, Operations

TOKENS = 1e6
"""Cost is given for a million output tokens."""
HOURS_PER_MONTH = 730.0
_RATIO = "goodput"


@dataclass(frozen=True)
class CostAtLoad:
    """One cell: tokens within the objectives, and what they cost; None where not measured."""

    trial_id: str
    load: LoadPoint
    workload: str
    temperature: float
    goodput_tok_per_s: Mapping[Arm, float | None]
    cost_per_mtok: Mapping[Arm, float | None]
    """Currency of the file; None without a price."""
    cost_ratio: Estimate | None
    """Cost per token, speculative / baseline; below 1 speculation is cheaper."""
    sensitivity: Mapping[float, Mapping[Arm, float | None]]
    """By factor of the price."""
    break_even_mtok_per_month: float | None
    """Million tokens a month from which the saving pays for the people's work; None where there is
    no saving told, no price, or no work was stated."""
    break_even_tok_per_s: float | None
    """The same as a mean rate."""

    @property
    def cheaper(self) -> bool | None:
        """Told to cost less per token; None where the interval holds 1 or there is none."""
        if self.cost_ratio is None or self.cost_ratio.low <= 1 <= self.cost_ratio.high:
            return None
        return self.cost_ratio.high < 1


@dataclass(frozen=True)
class DeploymentCost:
    """What one speculative deployment costs beside the baseline."""

    draft: str
    pair_key: str
    currency: str | None
    device_hour: float | None
    devices: int
    within_slo: bool
    """False: no objective was given, so every token counts."""
    needs: Mapping[Arm, Needs]
    at: tuple[CostAtLoad, ...]
    work_per_month: float | None
    """Money for people's work in a month, the one-time hours spread; None where not stated."""
    work_hours_per_month: float | None
    pays_from: Mapping[str, BreakEven]
    """By ladder (its first trial's id): where cost per token crosses the baseline's."""


def costs(result: SweepResult) -> tuple[DeploymentCost, ...]:
    """One entry for every speculative deployment, in the plan's order."""
    experiment = result.manifest["experiment"]
    price = None if experiment.get("cost") is None else Cost.model_validate(experiment["cost"])
    return tuple(
        _deployment(trials, price, within_slo=bool(experiment.get("slo")), result=result)
        for trials in by_deployment(result).values()
    )


def cost_per_mtok(
    goodput_tok_per_s: float | None, device_hour: float, devices: int
) -> float | None:
    """Price of a million output tokens within the objectives.

    Formula: device_hour * devices * 1e6 / (3600 * goodput_tok_per_s)
    Unit: the price's currency. Undefined: nothing was delivered within the objectives.
    """
    if not goodput_tok_per_s:
        return None
    return device_hour * devices * TOKENS / (3600 * goodput_tok_per_s)


def work_hours_per_month(operations: Operations) -> float | None:
    """Formula: integration / months + upkeep + incidents. Undefined: no question was answered."""
    answers = (
        operations.integration_hours,
        operations.upkeep_hours_per_month,
        operations.incident_hours_per_month,
    )
    if all(answer is None for answer in answers):
        return None
    once, upkeep, incidents = (answer or 0.0 for answer in answers)
    return once / operations.months + upkeep + incidents


def cost_ratio(trial: TrialResult) -> Estimate | None:
    """Cost per token within the objectives, speculative / baseline, on the same devices.

    Formula: goodput_tok_per_s, baseline / speculative, pair by pair; interval as of any speedup
    Undefined: before the first look; or an arm delivered nothing within the objectives in some pair
        (what the rest cost would be the cost of survivors).
    """
    found = [_log_ratio(pair) for pair in trial.valid_pairs]
    logs = [log for log in found if log is not None]
    if not logs or len(logs) < len(found):
        return None
    plan = look_plan(trial.trial.protocol, len(logs))
    interval = repeated_interval(logs[: plan.pairs_max], plan)
    if interval is None:
        return None
    return _inverse(Estimate.of(interval))


def _log_ratio(pair: Pair) -> float | None:
    a, b = pair.speculative.goodput_tok_per_s, pair.baseline.goodput_tok_per_s
    return math.log(a / b) if a and b else None


def _deployment(
    trials: Sequence[TrialResult], price: Cost | None, *, within_slo: bool, result: SweepResult
) -> DeploymentCost:
    pair = trials[0].trial.pair
    devices = engine_parallelism(_counts(pair.baseline.engine))
    if price is not None and price.devices is not None:
        devices = price.devices
    operations = None if price is None else price.operations
    hours = None if operations is None else work_hours_per_month(operations)
    work = (
        None
        if hours is None or operations is None or operations.hour_price is None
        else hours * operations.hour_price
    )
    measured = [
        trial for trial in trials if cell_at(result, trial).standing is not Standing.MISSING
    ]
    return DeploymentCost(
        draft=pair.speculative.label(),
        pair_key=pair.key,
        currency=None if price is None else price.currency,
        device_hour=None if price is None else price.device_hour,
        devices=devices,
        within_slo=within_slo,
        needs={arm: needs(trials, arm) for arm in ARMS},
        at=tuple(_at(trial, price, devices, work) for trial in measured),
        work_per_month=work,
        work_hours_per_month=hours,
        pays_from=dict(_pays_from(measured)),
    )


def _counts(engine: Mapping[str, Any]) -> Mapping[str, Any]:
    """An attached server's arguments are not known: one device."""
    return engine if "attached" not in engine else {}


def _at(trial: TrialResult, price: Cost | None, devices: int, work: float | None) -> CostAtLoad:
    goodput = {arm: trial.figures[arm].get("goodput_tok_per_s") for arm in ARMS}
    hour = None if price is None else price.device_hour

    def priced(factor: float) -> dict[Arm, float | None]:
        return {
            arm: None if hour is None else cost_per_mtok(goodput[arm], factor * hour, devices)
            for arm in ARMS
        }

    money, ratio = priced(1.0), cost_ratio(trial)
    volume = None
    a, b = money["baseline"], money["speculative"]
    told_cheaper = ratio is not None and ratio.high < 1
    if work is not None and a is not None and b is not None and told_cheaper and a > b:
        volume = work / (a - b)
    cell = trial.trial.cell
    return CostAtLoad(
        trial_id=trial.trial.id,
        load=cell.load,
        workload=cell.workload.name,
        temperature=cell.sampling.temperature,
        goodput_tok_per_s=goodput,
        cost_per_mtok=money,
        cost_ratio=ratio,
        sensitivity={} if price is None else {f: priced(f) for f in price.sensitivity},
        break_even_mtok_per_month=volume,
        break_even_tok_per_s=(
            None if volume is None else volume * TOKENS / (HOURS_PER_MONTH * 3600)
        ),
    )


def _pays_from(trials: Sequence[TrialResult]) -> Mapping[str, BreakEven]:
    """Ladders by the ratio of tokens within the objectives, which is the inverse cost ratio."""
    groups: dict[str, list[TrialResult]] = {}
    for trial in trials:
        groups.setdefault(ladder_key(trial.trial), []).append(trial)
    found = {}
    for group in groups.values():
        rungs = [
            Rung(trial.trial.cell.load, speedups={_RATIO: _inverse(r)})
            for trial in group
            if (r := cost_ratio(trial)) is not None
        ]
        if len(rungs) > 1:
            found[group[0].trial.id] = break_even_load(rungs, _RATIO)
    return found


def _inverse(ratio: Estimate) -> Estimate:
    return Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
