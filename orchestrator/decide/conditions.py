"""Under which conditions some trials were measured, how sure they are, and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from orchestrator.decide.conclusion import Conditions, Confidence, ControlState
from orchestrator.decide.device import device_name, engine_names
from orchestrator.decide.message import Message, said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Decision
from orchestrator.plan.ladder import load_level
from orchestrator.plan.trial import LoadPoint


def conditions_of(result: SweepResult, trials: Sequence[TrialResult]) -> Conditions:
    """What `trials` have in common and the ranges they span."""
    cells = [trial.trial.cell for trial in trials]
    modes = {cell.load.mode for cell in cells}
    mode: Literal["closed", "open"] | None = modes.pop() if len(modes) == 1 else None
    levels = [level for cell in cells if (level := level_of(cell.load)) is not None]
    lengths = [
        length
        for name in distinct(cell.workload.name for cell in cells)
        if (length := input_length(result.manifest, name)) is not None
    ]
    return Conditions(
        target=(trials[0].trial.pair.baseline.target if trials else None)
        or result.manifest["experiment"].get("target"),
        drafts=distinct(
            trial.trial.pair.speculative.label()
            for trial in trials
            if trial.trial.kind != "aa_control"
        ),
        device=device_name(result.manifest.get("environment") or {}),
        engines=engine_names(trials),
        workloads=distinct(cell.workload.name for cell in cells),
        input_tokens=(min(lengths), max(lengths)) if lengths else None,
        output_tokens=tuple(sorted({cell.workload.output_tokens for cell in cells})),
        load_mode=mode,
        load_range=(min(levels), max(levels)) if levels and mode else None,
        temperatures=tuple(sorted({cell.sampling.temperature for cell in cells})),
        sampling=distinct(
            f"{name}={value:g}"
            for cell in cells
            for name in ("top_p", "top_k", "min_p")
            if (value := getattr(cell.sampling, name)) is not None
        ),
        simulated=any(trial.simulated for trial in trials) or result.simulated,
    )


def confidence_of(
    result: SweepResult, trials: Sequence[TrialResult], *, confirmed: bool | None = None
) -> Confidence | None:
    """Of a statement that all of `trials` carry; None without one that has an interval.

    The interval is the one nearest to 1 (the weakest support); pairs are summed.
    """
    decisions = [result.decision(trial) for trial in trials if trial.pairs]
    shown = [d for d in decisions if d.low is not None and d.high is not None]
    if not shown:
        return None
    weakest = min(shown, key=_distance_from_one)
    return Confidence(
        level=weakest.confidence,
        metric=weakest.metric,
        speedup=weakest.speedup,
        low=weakest.low,
        high=weakest.high,
        pairs=sum(d.pairs for d in decisions),
        control=control_state(result),
        confirmed=confirmed,
    )


def _distance_from_one(decision: Decision) -> float:
    interval = decision.interval
    if interval is None:
        return 0.0
    return max(interval.log_low, -interval.log_high)


def control_state(result: SweepResult) -> ControlState:
    """What the A/A control says of every verdict of the sweep."""
    control = result.control()
    if control is None or control.interval is None:
        return "not_measured"
    if not control.trustworthy:
        return "failed"
    interval, margin = control.interval, control.log_margin
    inside = -margin <= interval.log_low and interval.log_high <= margin
    return "held" if inside else "wide"


def beyond(result: SweepResult, trials: Sequence[TrialResult]) -> tuple[Message, ...]:
    """The ends of what was measured: loads, lengths and temperatures outside are not spoken of."""
    found = conditions_of(result, trials)
    gaps: list[Message] = []
    if found.load_range is not None and found.load_mode is not None:
        low, high = found.load_range
        unit = said(f"unit.{found.load_mode}")
        if found.load_mode == "closed" and low <= 1:
            gaps.append(said("gap.load_above", high=high, unit=unit))
        else:
            gaps.append(said("gap.load_outside", low=low, high=high, unit=unit))
    if found.input_tokens is not None:
        low, high = found.input_tokens
        if high < 1.5 * low:
            gaps.append(said("gap.one_length", tokens=round((low + high) / 2)))
        else:
            gaps.append(said("gap.lengths_outside", low=round(low), high=round(high)))
    if len(found.temperatures) == 1:
        gaps.append(said("gap.one_temperature", temperature=found.temperatures[0]))
    return tuple(gaps)


def level_of(load: LoadPoint) -> float | None:
    """`load_level`, or None for a load that does not say how much it offers."""
    try:
        return load_level(load)
    except ValueError:
        return None


def input_length(manifest: Mapping[str, Any], workload: str) -> float | None:
    """Median input length of a workload in tokens; None where the manifest does not say."""
    tokens = ((manifest.get("prompts") or {}).get(workload) or {}).get("tokens") or {}
    median = tokens.get("median")
    return None if median is None else float(median)


def prompt_source(manifest: Mapping[str, Any], workload: str) -> str | None:
    """Where a workload's prompts came from (`bundled:chat`, a file); None where not recorded."""
    source = ((manifest.get("prompts") or {}).get(workload) or {}).get("source")
    return None if source is None else str(source)


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order of first appearance."""
    return tuple(dict.fromkeys(names))


def ids(trials: Iterable[TrialResult]) -> tuple[str, ...]:
    return tuple(trial.trial.id for trial in trials)
