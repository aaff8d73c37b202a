"""The risks of reading too much into a result; each appears when, and only when, it applies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.decide.conclusion import Conclusion, Kind
from orchestrator.decide.conditions import (
    conditions_of,
    control_state,
    distinct,
    ids,
    prompt_source,
)
from orchestrator.decide.device import device_name, engine_names
from orchestrator.decide.message import Message, Value, said, spoken
from orchestrator.decide.soundness import SOAK, measured_s
from orchestrator.decide.suites import of_suite
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Verdict

PROMPTS_MIN = 100
"""Fewer distinct prompts say little about a distribution of questions."""
LEAKS_SHOW_AFTER_S = 3600.0
NOT_THE_USERS = ("bundled:", "random:", "hf:", "spec_bench", "mt_bench", "sharegpt")
"""Prompt sources that are nobody's production traffic."""


def risks(result: SweepResult) -> Iterator[Conclusion]:
    """In the order of how much they may change the reading."""
    if not result.every:
        return
    if result.simulated:
        yield _risk(result, "risk.simulated")
    yield from _control(result)
    yield from _samples(result)
    yield from _tied(result)
    yield from _short(result)
    yield from _variance(result)
    yield from _metric(result)
    yield from _revision(result)


def _risk(
    result: SweepResult,
    key: str,
    trials: Sequence[TrialResult] | None = None,
    **values: Value,
) -> Conclusion:
    about = result.every if trials is None else trials
    return Conclusion(
        kind=Kind.RISK,
        key=key,
        tone="warning",
        conditions=conditions_of(result, about),
        values=values,
        evidence=ids(about) if trials is not None else (),
    )


def _control(result: SweepResult) -> Iterator[Conclusion]:
    state = control_state(result)
    if state == "not_measured":
        yield _risk(result, "risk.no_control")
        return
    control = result.control()
    if control is None or control.floor is None:
        return
    below = [
        trial
        for trial in result.trials
        if (d := result.decision(trial)).verdict in (Verdict.FASTER, Verdict.SLOWER)
        and d.speedup is not None
        and control.above_floor(d.speedup) is False
    ]
    if below and state != "failed":
        yield _risk(result, "risk.below_floor", below, floor=control.floor, cells=_labels(below))


def _samples(result: SweepResult) -> Iterator[Conclusion]:
    names = distinct(trial.trial.cell.workload.name for trial in result.trials)
    profiles = result.manifest.get("prompts") or {}
    few: list[Message] = []
    foreign: list[str] = []
    for name in names:
        count = (profiles.get(name) or {}).get("prompts")
        if count is not None and count < PROMPTS_MIN:
            few.append(said("risk.few_prompts_of", workload=name, prompts=int(count)))
        source = prompt_source(result.manifest, name)
        if source is None or source.startswith(NOT_THE_USERS):
            foreign.append(name)
    if few:
        yield _risk(result, "risk.few_prompts", workloads=tuple(few), least=PROMPTS_MIN)
    if foreign:
        yield _risk(result, "risk.unlike_production", workloads=tuple(foreign))


def _tied(result: SweepResult) -> Iterator[Conclusion]:
    if not any(trial.valid_pairs for trial in result.every) or result.simulated:
        return
    device = device_name(result.manifest.get("environment") or {})
    yield _risk(
        result,
        "risk.tied",
        device=said("value.unknown") if device is None else spoken(device),
        engines=engine_names(result.every) or (said("value.unknown"),),
    )


def _short(result: SweepResult) -> Iterator[Conclusion]:
    longest = max(
        (
            trial.ended_unix_s - trial.started_unix_s
            for trial in result.every
            if trial.started_unix_s is not None and trial.ended_unix_s is not None
        ),
        default=None,
    )
    if longest is None or of_suite(result, SOAK) or longest >= LEAKS_SHOW_AFTER_S:
        return
    yield _risk(
        result, "risk.too_short", minutes=longest / 60, measured_minutes=measured_s(result) / 60
    )


def _variance(result: SweepResult) -> Iterator[Conclusion]:
    """Cells that could not be told, or in which order, drift or odd pairs were seen."""
    open_cells = [
        t
        for t in result.trials
        if t.valid_pairs and result.decision(t).verdict is Verdict.CANNOT_TELL
    ]
    if open_cells:
        yield _risk(
            result,
            "risk.not_told",
            open_cells,
            cells=len(open_cells),
            of=len(result.trials),
        )
    odd = [
        trial
        for trial in result.every
        if trial.pairs
        and (
            ((order := result.decision(trial).trend.order) is not None and order.present)
            or ((robust := result.decision(trial).robust) is not None and robust.outliers)
        )
    ]
    if odd:
        yield _risk(result, "risk.sensitive", odd, cells=_labels(odd))
    if control_state(result) == "wide":
        control = result.control()
        assert control is not None and control.interval is not None
        yield _risk(
            result,
            "risk.wide_control",
            result.controls,
            low=control.interval.low,
            high=control.interval.high,
        )


def _metric(result: SweepResult) -> Iterator[Conclusion]:
    """Below saturation an open loop's throughput is what is offered, in both arms."""
    blind = [
        trial
        for trial in result.trials
        if trial.trial.cell.load.mode == "open"
        and trial.trial.protocol.metric == "speedup_throughput"
        and any(not at.saturated for at in trial.rung.arms.values())
    ]
    if blind:
        yield _risk(result, "risk.throughput_of_open_loop", blind)


def _revision(result: SweepResult) -> Iterator[Conclusion]:
    product = (result.manifest.get("environment") or {}).get("product") or {}
    if product.get("modified"):
        yield _risk(result, "risk.modified", revision=str(product.get("revision")))


def _labels(trials: Sequence[TrialResult]) -> tuple[str, ...]:
    return tuple(trial.trial.label() for trial in trials)
