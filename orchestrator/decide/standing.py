"""Where each cell stands after correction, and cells in the order of their load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.analyse.rung import Estimate
from orchestrator.decide.conditions import level_of
from orchestrator.decide.message import Message, said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Decision, Verdict
from orchestrator.plan.ladder import ladder_key


class Standing(StrEnum):
    """What may be said of one cell."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUAL = "equal"
    OPEN = "open"
    """Measured, but cannot be told."""
    MISSING = "missing"
    """Failed, stopped or not run: nothing that counts was measured."""


_OF = {
    Verdict.FASTER: Standing.FASTER,
    Verdict.SLOWER: Standing.SLOWER,
    Verdict.NO_PRACTICAL_DIFFERENCE: Standing.EQUAL,
    Verdict.CANNOT_TELL: Standing.OPEN,
}


@dataclass(frozen=True)
class CellAt:
    """One comparison with what may be said of it."""

    result: TrialResult
    decision: Decision
    standing: Standing

    @property
    def level(self) -> float | None:
        return level_of(self.result.trial.cell.load)

    @property
    def estimate(self) -> Estimate | None:
        """The headline with its interval; None before the first look."""
        interval = self.decision.interval
        return None if interval is None else Estimate.of(interval)


def cell_at(result: SweepResult, trial: TrialResult) -> CellAt:
    decision = result.decision(trial)
    ended_badly = trial.outcome is None or trial.outcome.status != "finished"
    missing = not trial.valid_pairs or (ended_badly and decision.verdict is Verdict.CANNOT_TELL)
    return CellAt(trial, decision, Standing.MISSING if missing else _OF[decision.verdict])


def over_load(result: SweepResult) -> tuple[tuple[CellAt, ...], ...]:
    """Comparisons that differ only in the load, lowest first; a single one is a group as well."""
    groups: dict[str, list[CellAt]] = defaultdict(list)
    for trial in result.trials:
        groups[ladder_key(trial.trial)].append(cell_at(result, trial))
    return tuple(tuple(sorted(group, key=_by_level)) for group in groups.values())


def _by_level(cell: CellAt) -> float:
    return 0.0 if cell.level is None else cell.level


def standing_in(cells: Iterable[CellAt], standing: Standing) -> list[CellAt]:
    return [cell for cell in cells if cell.standing is standing]


def told(cells: Iterable[CellAt]) -> list[CellAt]:
    """Those with a verdict other than "cannot tell"."""
    return [c for c in cells if c.standing not in (Standing.OPEN, Standing.MISSING)]


def trials_of(cells: Iterable[CellAt]) -> list[TrialResult]:
    return [cell.result for cell in cells]


def load_said(cell: CellAt) -> Message:
    """`8 in flight`, as a message."""
    load = cell.result.trial.cell.load
    if cell.level is None or (load.arrivals == "trace" and load.rate_rps is None):
        return said("load.trace", scale=load.time_scale)
    return said(f"load.{load.mode}", level=cell.level)


def load_range_said(lowest: CellAt, highest: CellAt) -> Message:
    """`1 to 8 in flight`, as a message."""
    kind = load_said(lowest).key.removeprefix("load.")
    ends = {name: next(iter(load_said(cell).values.values())) for name, cell in
            (("low", lowest), ("high", highest))}  # fmt: skip
    return said(f"load.range.{kind}", **ends)


def speedups_said(cells: Sequence[CellAt]) -> tuple[Message, ...]:
    """One message a cell: its load and its speedup with interval; why there is none."""
    return tuple(_speedup_said(cell) for cell in cells)


def _speedup_said(cell: CellAt) -> Message:
    where, d = load_said(cell), cell.decision
    if cell.standing is Standing.MISSING:
        return said("cell.missing", load=where, why=why_missing(cell))
    if d.speedup is None or d.low is None or d.high is None:
        return said("cell.few", load=where, pairs=d.pairs)
    return said("cell.speedup", load=where, speedup=d.speedup, low=d.low, high=d.high)


def why_missing(cell: CellAt) -> Message:
    outcome = cell.result.outcome
    if outcome is None:
        return said("missing.not_ended")
    if outcome.status == "failed":
        return said("missing.failed", failure=str(outcome.failure))
    if outcome.status == "stopped":
        return said("missing.stopped", cause=outcome.cause or "")
    return said("missing.no_valid_pairs")


def subject(cells: Sequence[CellAt]) -> dict[str, str | float]:
    """Which deployment, workload and temperature a group of cells is about."""
    cell = cells[0].result.trial
    return {
        "draft": cell.pair.speculative.label(),
        "workload": cell.cell.workload.name,
        "temperature": cell.cell.sampling.temperature,
    }
