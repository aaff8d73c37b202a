"""At which load speculation must be switched off."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.decide.conclusion import Conclusion, Kind, Tone
from orchestrator.decide.conditions import beyond, conditions_of, confidence_of, ids
from orchestrator.decide.ladders import Ladder, ladders
from orchestrator.decide.message import Value, said
from orchestrator.decide.standing import (
    CellAt,
    Standing,
    cell_at,
    load_range_said,
    load_said,
    speedups_said,
    standing_in,
    subject,
    trials_of,
)
from orchestrator.decide.sweep_result import SweepResult


def switch_off_loads(result: SweepResult) -> Iterator[Conclusion]:
    """One conclusion for every ladder of loads."""
    for ladder in ladders(result.trials):
        yield _conclusion(result, ladder)


def _conclusion(result: SweepResult, ladder: Ladder) -> Conclusion:
    cells = [cell_at(result, trial) for trial in ladder.trials]
    key, tone, values = _rule(ladder, cells)
    carrying = standing_in(cells, Standing.FASTER) + standing_in(cells, Standing.SLOWER)
    return Conclusion(
        kind=Kind.SWITCH_OFF,
        key=key,
        tone=tone,
        conditions=conditions_of(result, trials_of(cells)),
        values={
            **subject(cells),
            "metric": said(f"metric.{ladder.metric}"),
            "unit": said(f"unit.{ladder.trials[0].trial.cell.load.mode}"),
            "high_load": load_said(cells[-1]),
            "range": load_range_said(cells[0], cells[-1]),
            **values,
        },
        confidence=confidence_of(result, trials_of(carrying)) if carrying else None,
        evidence=ids(trials_of(cells)),
        not_measured=beyond(result, trials_of(cells)),
    )


def _rule(ladder: Ladder, cells: list[CellAt]) -> tuple[str, Tone, dict[str, Value]]:
    """A load is named only where the corrected verdicts of both sides stand.

    The crossing itself comes from each rung's own interval; where a side is not called after
    correction over the sweep's cells, the crossing is tentative and says so.
    """
    even = ladder.break_even
    faster = standing_in(cells, Standing.FASTER)
    slower = standing_in(cells, Standing.SLOWER)
    if len(even.crossings) > 1:
        return "switch_off.several", "warning", {"loads": tuple(c.load for c in even.crossings)}
    if even.crossings:
        crossing = even.crossings[0]
        where: dict[str, Value] = {
            "load": crossing.load,
            "low": crossing.low,
            "high": crossing.high,
            "below": crossing.between[0],
            "above": crossing.between[1],
        }
        if not (faster and slower):
            return "switch_off.tentative", "unknown", where
        if crossing.direction == "falling":
            return "switch_off.at", "neutral", where
        return "switch_off.on_from", "neutral", where
    if faster and slower:
        return "switch_off.contradictory", "warning", {}
    if slower:
        return "switch_off.never_pays", "against", {"slower": speedups_said(slower)}
    if faster and faster[-1] is cells[-1]:
        return "switch_off.beyond", "for", {"at": load_said(cells[-1])}
    if faster:
        return "switch_off.not_resolved", "unknown", {"last": load_said(faster[-1])}
    return "switch_off.no_gain", "unknown", {}
