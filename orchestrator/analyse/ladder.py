"""How far each arm carries: the knee of a ladder, and where to look closer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.analyse.break_even_load import BreakEven, break_even_load
from orchestrator.analyse.cliff import Cliff, Plateau, cliffs, plateau
from orchestrator.analyse.rung import ArmAtRung, Estimate, Rung, in_order
from orchestrator.plan.refine import Bracket
from orchestrator.records import ARMS, Arm

__all__ = [
    "ArmAtRung",
    "BreakEven",
    "Cliff",
    "Estimate",
    "Knee",
    "Plateau",
    "Rung",
    "brackets",
    "break_even_load",
    "cliffs",
    "highest_sustained",
    "in_order",
    "knee",
    "plateau",
]

ATTAINMENT_TARGET = 0.95
ACHIEVED_MIN = 0.95


@dataclass(frozen=True, slots=True)
class Knee:
    """`knee_rps` or `knee_concurrency` of one arm, and how well it is known."""

    arm: Arm
    load: float | None
    """Highest load that qualifies; None when none does."""
    next_load: float | None
    """Lowest measured load above it, which does not qualify: the knee lies before it."""
    why: str
    """What the first load above it lacks, or why there is no knee."""
    notes: tuple[str, ...] = ()

    @property
    def bracket(self) -> Bracket | None:
        if self.load is None or self.next_load is None:
            return None
        return Bracket(self.load, self.next_load, f"knee of the {self.arm} arm")


def knee(rungs: Iterable[Rung], arm: Arm, attainment_target: float = ATTAINMENT_TARGET) -> Knee:
    """The highest load at which an arm still keeps what was promised.

    Formula: highest rung with slo_attainment >= target and achieved >= 0.95 of offered
    Not qualified: a saturated rung, whose attainment depends only on how long one measures. In a
        closed loop achieved = offered. Rungs that were not run say nothing.
    Undefined (None): no rung qualifies, or no SLO was given.
    """
    if not 0 < attainment_target <= 1:
        raise ValueError(
            f"attainment target: `0 < target <= 1` must hold, but got {attainment_target}"
        )
    measured = [r for r in in_order(rungs) if arm in r.arms]
    if not measured:
        return Knee(arm, None, None, "no rung was measured")
    if all(r.arms[arm].attainment is None for r in measured):
        return Knee(arm, None, None, "no SLO was given: there is no attainment to judge by")
    return _highest(
        arm,
        [
            (r, _below_target(r.arms[arm], attainment_target) or _behind(r.arms[arm]))
            for r in measured
        ],
        notes=_close_calls(measured, arm, attainment_target),
    )


def highest_sustained(rungs: Iterable[Rung], arm: Arm) -> Knee:
    """The highest load that an arm keeps up with, whatever its latency: needs no SLO.

    Formula: highest rung with achieved >= 0.95 of offered that is not saturated
    Undefined (None): a closed loop, which offers only what is taken; or no such rung.
    """
    measured = [r for r in in_order(rungs) if arm in r.arms]
    if measured and measured[0].load.mode == "closed":
        return Knee(arm, None, None, "a closed loop offers only what is taken; see the plateau")
    if not measured:
        return Knee(arm, None, None, "no rung was measured")
    return _highest(arm, [(r, _behind(r.arms[arm], must_be_known=True)) for r in measured])


def brackets(
    rungs: Iterable[Rung], metrics: Sequence[str], attainment_target: float = ATTAINMENT_TARGET
) -> tuple[Bracket, ...]:
    """Where further rungs would tell more, the most promising first.

    In order: crossings of 1 that were found, the knees, and then where a crossing may hide.
    """
    ordered = in_order(rungs)
    even = [break_even_load(ordered, metric) for metric in metrics]
    knees = [knee(ordered, arm, attainment_target).bracket for arm in ARMS]
    return (
        *(bracket for found in even for bracket in found.crossing_brackets),
        *(bracket for bracket in knees if bracket is not None),
        *(bracket for found in even for bracket in found.unresolved_brackets),
    )


def _highest(
    arm: Arm, judged: Sequence[tuple[Rung, str | None]], notes: tuple[str, ...] = ()
) -> Knee:
    """`judged`: every measured rung, lowest first, with what it lacks (None: it qualifies)."""
    good = [i for i, (_, lack) in enumerate(judged) if lack is None]
    if not good:
        rung, lack = judged[0]
        why = f"no rung qualifies; the lowest, {rung.load.label()}: {lack}"
        return Knee(arm, None, None, why, notes)
    top = good[-1]
    load = judged[top][0].offered
    missed = [f"{r.load.label()} ({lack})" for r, lack in judged[:top] if lack is not None]
    if missed:
        notes = (*notes, f"not monotone: {', '.join(missed)} below the knee does not qualify")
    if top + 1 == len(judged):
        why = "the highest measured rung qualifies: the knee lies beyond the range"
        return Knee(arm, load, None, why, notes)
    above, lack = judged[top + 1]
    return Knee(arm, load, above.offered, f"{above.load.label()}: {lack}", notes)


def _below_target(at: ArmAtRung, target: float) -> str | None:
    if at.attainment is None:
        return "attainment is undefined"
    if at.attainment.value < target:
        return f"attainment {at.attainment} is below {target:g}"
    return None


def _behind(at: ArmAtRung, *, must_be_known: bool = False) -> str | None:
    if at.saturation is not None and at.saturation.saturated:
        return f"saturated: {at.saturation.why}"
    if at.achieved_over_offered is None:
        return "what was achieved is undefined" if must_be_known else None
    if at.achieved_over_offered < ACHIEVED_MIN:
        return f"achieved {at.achieved_over_offered:.3g} of offered, less than {ACHIEVED_MIN:g}"
    return None


def _close_calls(measured: Sequence[Rung], arm: Arm, target: float) -> tuple[str, ...]:
    return tuple(
        f"{rung.load.label()}: attainment {a} is not told from {target:g}"
        for rung in measured
        if (a := rung.arms[arm].attainment) is not None and a.low < target <= a.high
    )
