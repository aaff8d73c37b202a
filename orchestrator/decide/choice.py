"""Which draft and how long, as far as the measured configurations can be told apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from orchestrator.analyse.rung import Estimate, ratio
from orchestrator.decide.conclusion import Conclusion, Kind, Tone
from orchestrator.decide.conditions import beyond, conditions_of, confidence_of, ids
from orchestrator.decide.message import Message, Value, said
from orchestrator.decide.standing import (
    CellAt,
    Standing,
    cell_at,
    load_said,
    standing_in,
    told,
    trials_of,
)
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Verdict


def choices(result: SweepResult) -> Iterator[Conclusion]:
    """The confirmation of the best cell; the leader of every workload; the trend over K."""
    yield from _best(result)
    for cells in _rivals(result):
        yield _leaders(result, cells)
    yield from _lengths(result)


def confirmation_of(result: SweepResult, trial: TrialResult) -> TrialResult | None:
    """The same cell on prompts not used before; None while there is none with a verdict."""
    return next(
        (
            again
            for again in result.confirmations
            if again.trial.cell == trial.trial.cell
            and again.trial.pair.key == trial.trial.pair.key
            and again.headline.interval is not None
        ),
        None,
    )


def _best(result: SweepResult) -> Iterator[Conclusion]:
    best = result.best
    if best is None:
        return
    again = confirmation_of(result, best)
    first = result.decision(best)
    values: dict[str, Value] = {
        "cell": best.trial.cell.label(),
        "speedup": first.speedup or 0.0,
        "low": first.low or 0.0,
        "high": first.high or 0.0,
    }
    key, tone, confirmed = _confirmed(again)
    if again is not None:
        d = again.headline
        values |= {
            "again": d.speedup or 0.0,
            "again_low": d.low or 0.0,
            "again_high": d.high or 0.0,
        }
    carrying = [best] if again is None else [again]
    yield Conclusion(
        kind=Kind.CHOICE,
        key=key,
        tone=tone,
        conditions=conditions_of(result, [best]),
        values=values,
        confidence=confidence_of(result, carrying, confirmed=confirmed),
        evidence=ids([best] if again is None else [best, again]),
        not_measured=beyond(result, [best]),
    )


def _confirmed(again: TrialResult | None) -> tuple[str, Tone, bool | None]:
    if again is None:
        return "choice.not_confirmed", "warning", None
    verdict = again.headline.verdict
    if verdict is Verdict.FASTER:
        return "choice.confirmed", "for", True
    if verdict is Verdict.CANNOT_TELL:
        return "choice.confirmation_open", "warning", None
    return "choice.confirmation_failed", "warning", False


def _rivals(result: SweepResult) -> Iterator[list[CellAt]]:
    """Cells of one workload and temperature, where more than one configuration was measured."""
    groups: dict[tuple[str, float], list[CellAt]] = defaultdict(list)
    for trial in result.trials:
        cell = trial.trial.cell
        groups[(cell.workload.name, cell.sampling.temperature)].append(cell_at(result, trial))
    for cells in groups.values():
        if len({_configuration(cell) for cell in cells}) > 1:
            yield cells


def _configuration(cell: CellAt) -> str:
    return cell.result.trial.pair.speculative.key


def _label(cell: CellAt) -> str:
    return cell.result.trial.pair.speculative.label()


def leader(cells: Sequence[CellAt]) -> CellAt | None:
    """The best lower end among those called faster; None where none is."""
    faster = [c for c in standing_in(cells, Standing.FASTER) if c.estimate is not None]
    return max(faster, key=lambda c: c.estimate.low if c.estimate else 0.0, default=None)


def not_told_from(first: CellAt, cells: Sequence[CellAt]) -> list[CellAt]:
    """Rivals whose speedup cannot be told from that of `first`.

    Formula: the interval of (speedup of `first` / rival's) contains 1 (`analyse.rung.ratio`; the
        two were measured in pairs of their own). A rival without an interval is not told either.
    """
    return [
        rival
        for rival in cells
        if rival is not first
        and _configuration(rival) != _configuration(first)
        and not _above(first.estimate, rival.estimate)
    ]


def _above(one: Estimate | None, other: Estimate | None) -> bool:
    if one is None or other is None or one.low <= 0 or other.low <= 0:
        return False
    return ratio(one, other).low > 1


def _leaders(result: SweepResult, cells: Sequence[CellAt]) -> Conclusion:
    by_load: dict[object, list[CellAt]] = defaultdict(list)
    for cell in cells:
        by_load[(cell.result.trial.cell.load, cell.result.trial.cell.batch_size)].append(cell)
    items: list[Message] = []
    leading: list[CellAt] = []
    alone = True
    for at_load in by_load.values():
        first = leader(at_load)
        if first is None:
            measured = told(at_load) or standing_in(at_load, Standing.OPEN)
            word = "choice.none_at" if measured else "choice.nothing_at"
            items.append(said(word, load=load_said(at_load[0])))
            continue
        leading.append(first)
        rivals = not_told_from(first, at_load)
        alone = alone and not rivals
        items.append(_leads(first, rivals))
    trial = cells[0].result.trial
    key, tone = _leader_rule(leading, len(by_load), alone)
    if not leading and not told(cells):
        key, tone = "choice.no_leader", "unknown"
    return Conclusion(
        kind=Kind.CHOICE,
        key=key,
        tone=tone,
        conditions=conditions_of(result, trials_of(cells)),
        values={
            "workload": trial.cell.workload.name,
            "temperature": trial.cell.sampling.temperature,
            "draft": _label(leading[0]) if leading else "",
            "per_load": tuple(items),
        },
        confidence=confidence_of(result, trials_of(leading)) if leading else None,
        evidence=ids(trials_of(cells)),
        not_measured=beyond(result, trials_of(cells)),
    )


def _leads(first: CellAt, rivals: Sequence[CellAt]) -> Message:
    d = first.decision
    values: dict[str, Value] = {
        "load": load_said(first),
        "draft": _label(first),
        "speedup": d.speedup or 0.0,
        "low": d.low or 0.0,
        "high": d.high or 0.0,
    }
    if not rivals:
        return Message("choice.leads_alone", values)
    return Message("choice.leads_among", {**values, "rivals": tuple(map(_label, rivals))})


def _leader_rule(leading: Sequence[CellAt], loads: int, alone: bool) -> tuple[str, Tone]:
    if not leading:
        return "choice.off", "against"
    one = len({_configuration(cell) for cell in leading}) == 1
    if one and len(leading) == loads:
        return ("choice.one" if alone else "choice.one_among"), "for"
    if one:
        return "choice.one_at_some_loads", "neutral"
    return "choice.by_load", "neutral"


def _lengths(result: SweepResult) -> Iterator[Conclusion]:
    """Over K, everything else equal: is the best length inside what was measured?"""
    groups: dict[tuple[object, ...], list[CellAt]] = defaultdict(list)
    for trial in result.trials:
        cell, speculation = trial.trial.cell, trial.trial.pair.speculative.speculation
        if speculation is None:
            continue
        options = tuple(sorted((k, str(v)) for k, v in speculation.options.items()))
        key = (cell.method, cell.draft, options, cell.workload.name, cell.sampling.temperature,
               cell.load, cell.batch_size)  # fmt: skip
        groups[key].append(cell_at(result, trial))
    edge: list[CellAt] = []
    falls: list[CellAt] = []
    for cells in groups.values():
        ordered = sorted(cells, key=_length)
        first = leader(ordered)
        if len({_length(c) for c in ordered}) < 2 or first is None:
            continue
        longest, shortest = ordered[-1], ordered[0]
        if first is longest and _above(longest.estimate, shortest.estimate):
            edge.append(longest)
        elif first is shortest and _above(shortest.estimate, longest.estimate):
            falls.append(shortest)
    for word, found in (("choice.length_edge", edge), ("choice.length_short", falls)):
        if found:
            yield Conclusion(
                kind=Kind.CHOICE,
                key=word,
                tone="neutral",
                conditions=conditions_of(result, trials_of(found)),
                values={"cells": tuple(cell.result.trial.cell.label() for cell in found)},
                confidence=confidence_of(result, trials_of(found)),
                evidence=ids(trials_of(found)),
                not_measured=(
                    said("gap.longer", length=max(_length(c) for c in found))
                    if word == "choice.length_edge"
                    else said("gap.shorter", length=min(_length(c) for c in found)),
                ),
            )


def _length(cell: CellAt) -> int:
    return cell.result.trial.cell.speculation_length
