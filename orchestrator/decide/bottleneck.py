"""What the time goes into without speculation: only serial decoding can be helped by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestrator.analyse.saturation import Regime
from orchestrator.decide.conclusion import Conclusion, Kind, Tone
from orchestrator.decide.conditions import beyond, conditions_of, ids, level_of
from orchestrator.decide.message import Message, said
from orchestrator.decide.standing import cell_at, load_said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult

DOMINATES = 0.5
"""A part of the response time dominates when it is more than this share."""


def decoding_share(trial: TrialResult) -> float | None:
    """Share of the baseline's response time that is serial decoding.

    Formula: (e2e_mean_s - ttft_mean_s) / e2e_mean_s, over valid pairs
    Unit: share. Undefined: either is not measured.
    """
    figures = trial.figures["baseline"]
    e2e, ttft = figures.get("e2e_mean_s"), figures.get("ttft_mean_s")
    if e2e is None or ttft is None or e2e <= 0:
        return None
    return max(0.0, (e2e - ttft) / e2e)


def verification_share(trial: TrialResult) -> float | None:
    """Share of a baseline's decode step spent in the target's forward pass.

    Formula: verify_s / step_s, means over decode steps
    Undefined: the engine does not say what its steps spend their time on.
    """
    times = trial.step.baseline
    return None if times is None or times.step_s <= 0 else times.verify_s / times.step_s


def queued(trial: TrialResult) -> bool:
    """Whether requests wait for a place in the baseline's batch: saturated, or past its cap."""
    at = trial.rung.arms.get("baseline")
    regimes = (Regime.SATURATED, Regime.QUEUEING)
    return at is not None and at.saturation is not None and at.saturation.regime in regimes


def bottlenecks(result: SweepResult) -> Iterator[Conclusion]:
    """One conclusion for every workload; the baseline is the same for all drafts."""
    groups: dict[str, list[TrialResult]] = defaultdict(list)
    for trial in result.trials:
        groups[trial.trial.cell.workload.name].append(trial)
    for workload, trials in groups.items():
        by_load: dict[float, TrialResult] = {}
        for trial in trials:
            level = level_of(trial.trial.cell.load)
            if level is not None and decoding_share(trial) is not None:
                by_load.setdefault(level, trial)
        chosen = [by_load[level] for level in sorted(by_load)]
        if chosen:
            yield _conclusion(result, workload, chosen)
        elif any(trial.valid_pairs for trial in trials):
            yield Conclusion(
                kind=Kind.BOTTLENECK,
                key="bottleneck.not_known",
                tone="unknown",
                conditions=conditions_of(result, trials),
                values={"workload": workload},
                evidence=ids(trials),
            )


def _conclusion(result: SweepResult, workload: str, trials: Sequence[TrialResult]) -> Conclusion:
    states = [_state(trial) for trial in trials]
    tone: Tone = "neutral"
    if set(states) == {"decoding"}:
        key = "bottleneck.decoding"
    elif set(states) == {"prefill"}:
        key, tone = "bottleneck.prefill", "against"
    elif set(states) == {"queue"}:
        key, tone = "bottleneck.queue", "warning"
    else:
        key = "bottleneck.depends"
    return Conclusion(
        kind=Kind.BOTTLENECK,
        key=key,
        tone=tone,
        # The baseline's time: whatever draft was measured beside it.
        conditions=replace(conditions_of(result, trials), drafts=()),
        values={
            "workload": workload,
            "per_load": tuple(
                _at_load(result, trial, state) for trial, state in zip(trials, states, strict=True)
            ),
        },
        evidence=ids(trials),
        not_measured=(
            *beyond(result, trials),
            *(
                ()
                if any(verification_share(t) is not None for t in trials)
                else [said("gap.stages")]
            ),
        ),
    )


def _state(trial: TrialResult) -> str:
    """decoding, prefill or queue: what most of the response time is.

    The wait for the first token is the queue's where requests are known to wait, else the
    prefill's.
    """
    share = decoding_share(trial)
    if share is not None and share > DOMINATES:
        return "decoding"
    return "queue" if queued(trial) else "prefill"


def _at_load(result: SweepResult, trial: TrialResult, state: str) -> Message:
    share = decoding_share(trial)
    step = verification_share(trial)
    return said(
        f"bottleneck.at_load.{state}",
        load=load_said(cell_at(result, trial)),
        percent=100 * (share or 0.0),
        step=said("value.none") if step is None else said("bottleneck.step", percent=100 * step),
    )
