"""Cells that differ only in the load, as ladders: knees, the break-even load, cliffs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.analyse.break_even_load import BreakEven
from orchestrator.analyse.cliff import Cliff, Plateau
from orchestrator.analyse.ladder import (
    Knee,
    brackets,
    break_even_load,
    cliffs,
    highest_sustained,
    knee,
    plateau,
)
from orchestrator.analyse.rung import Rung
from orchestrator.decide.derived import trial_result
from orchestrator.decide.trial_result import TrialResult
from orchestrator.plan.ladder import ladder_key, load_level
from orchestrator.plan.prompts import derived_seed
from orchestrator.plan.refine import next_rungs
from orchestrator.plan.trial import LoadPoint, Trial
from orchestrator.records import ARMS, Arm
from orchestrator.run.ladder_gate import RungOutcome, skip_reason
from orchestrator.store import SweepFolder

_WORTH_A_BREAK_EVEN = ("speedup_throughput", "speedup_tpot")


@dataclass(frozen=True)
class Ladder:
    """One deployment pair and workload over a range of loads."""

    label: str
    trials: tuple[TrialResult, ...]
    """Lowest load first."""
    metric: str
    break_even: BreakEven
    """Of `metric`."""
    further_break_evens: tuple[BreakEven, ...]
    """Of throughput and time per token, as far as they are not `metric`: a load may pay by one
    and not by the other."""
    knees: tuple[Knee, ...]
    """Per arm; with an SLO by attainment, without one the highest load that was kept up with."""
    cliffs: tuple[Cliff, ...]
    plateaus: tuple[Plateau, ...]

    @property
    def rungs(self) -> tuple[Rung, ...]:
        return tuple(trial.rung for trial in self.trials)

    @property
    def unit(self) -> str:
        return "in flight" if self.trials[0].trial.cell.load.mode == "closed" else "rps"


def ladders(results: Sequence[TrialResult]) -> tuple[Ladder, ...]:
    """Every group of comparisons that differ only in the load, where there are at least two."""
    groups: dict[str, list[TrialResult]] = defaultdict(list)
    for result in results:
        if result.trial.kind == "comparison":
            groups[ladder_key(result.trial)].append(result)
    return tuple(_ladder(group) for group in groups.values() if len(group) > 1)


def _ladder(group: Sequence[TrialResult]) -> Ladder:
    ordered = sorted(group, key=lambda result: load_level(result.trial.cell.load))
    rungs = [result.rung for result in ordered]
    trial = ordered[0].trial
    metric = trial.protocol.metric
    return Ladder(
        label=_label(trial),
        trials=tuple(ordered),
        metric=metric,
        break_even=break_even_load(rungs, metric),
        further_break_evens=tuple(
            break_even_load(rungs, other) for other in _WORTH_A_BREAK_EVEN if other != metric
        ),
        knees=tuple(_knee(rungs, arm) for arm in ARMS),
        cliffs=cliffs(rungs),
        plateaus=tuple(plateau(rungs, arm) for arm in ARMS)
        if trial.cell.load.mode == "closed"
        else (),
    )


def _knee(rungs: Sequence[Rung], arm: Arm) -> Knee:
    with_slo = any(arm in r.arms and r.arms[arm].attainment is not None for r in rungs)
    return knee(rungs, arm) if with_slo else highest_sustained(rungs, arm)


def _label(trial: Trial) -> str:
    cell = trial.cell
    draft = f"({cell.draft})" if cell.draft else ""
    return (
        f"{cell.method}{draft} K={cell.speculation_length} · {cell.workload.name} · "
        f"T={cell.sampling.temperature:g}"
    )


def further_trials(results: Sequence[TrialResult], rungs_left: int) -> list[Trial]:
    """The next loads worth measuring around knees and break-even loads, at most `rungs_left`."""
    wanted: list[Trial] = []
    for ladder in ladders(results):
        first = ladder.trials[0].trial
        closed = first.cell.load.mode == "closed"
        if not closed and first.cell.load.rate_rps is None:
            continue  # a trace that is scaled by hand: the file says how fast it runs
        loads = [load_level(result.trial.cell.load) for result in ladder.trials]
        for rung in next_rungs(
            loads,
            brackets(ladder.rungs, [ladder.metric]),
            whole=closed,
            rungs_left=rungs_left - len(wanted),
        ):
            wanted.append(_at(first, rung.load))
    return wanted


def _at(trial: Trial, load: float) -> Trial:
    """The same trial at another load."""
    cell = trial.cell
    point: LoadPoint
    if cell.load.mode == "closed":
        point = replace(cell.load, concurrency=round(load))
        follows = cell.batch_size == cell.load.concurrency
        cell = replace(cell, load=point, batch_size=round(load) if follows else cell.batch_size)
    else:
        cell = replace(cell, load=replace(cell.load, rate_rps=load))
    return replace(trial, cell=cell, seed=derived_seed(trial.seed, "rung", str(load)))


@dataclass(frozen=True)
class LadderGate:
    """Whether a trial's load is already known to be too much. Picklable; reads the store."""

    folder: SweepFolder
    rungs: Mapping[str, tuple[Trial, ...]]
    """By ladder; those of one rung alone are left out."""

    @classmethod
    def over(cls, folder: SweepFolder, trials: Iterable[Trial]) -> LadderGate:
        """Sorted into their ladders once: thousands of trials ask."""
        found: dict[str, list[Trial]] = defaultdict(list)
        for trial in trials:
            found[ladder_key(trial)].append(trial)
        return cls(folder, {key: tuple(many) for key, many in found.items() if len(many) > 1})

    def __call__(self, trial: Trial) -> str | None:
        """Why `trial` need not be run; None = run it."""
        level = load_level(trial.cell.load)
        ladder = self.rungs.get(ladder_key(trial), ())
        lower = [other for other in ladder if load_level(other.cell.load) < level]
        return skip_reason(trial, [seen for other in lower if (seen := self._seen(other))])

    def _seen(self, trial: Trial) -> RungOutcome | None:
        folder = self.folder.trial(trial.id)
        outcome = folder.outcome()
        if outcome is None:
            return None
        if outcome.status == "failed" or trial.cell.load.mode == "closed":
            return RungOutcome(trial, outcome)
        arms = trial_result(trial, folder).rung.arms
        saturated = {
            arm: at.saturation.why
            for arm, at in arms.items()
            if at.saturation is not None and at.saturation.saturated
        }
        return RungOutcome(trial, outcome, saturated)
