"""What speculation does over load: where it pays, where it does not, where that is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from orchestrator.analyse.pairs import SPEEDUPS
from orchestrator.analyse.rung import ratio
from orchestrator.decide.conclusion import Conclusion, Kind, Tone
from orchestrator.decide.conditions import beyond, conditions_of, confidence_of, ids
from orchestrator.decide.message import Message, Value, said
from orchestrator.decide.standing import (
    CellAt,
    Standing,
    load_said,
    over_load,
    speedups_said,
    standing_in,
    subject,
    told,
    trials_of,
)
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.verdict import Verdict


def effects(result: SweepResult) -> Iterator[Conclusion]:
    """For every deployment, workload and temperature: the effect over the measured loads."""
    for cells in over_load(result):
        yield _over_load(result, cells)
        yield from _trend(result, cells)
        yield from _trade_offs(result, cells)


def _over_load(result: SweepResult, cells: Sequence[CellAt]) -> Conclusion:
    key, tone, carrying = _rule(cells)
    carried = carrying or list(cells)
    values: dict[str, Value] = {**subject(cells), "metric": _metric(cells)}
    for standing in Standing:
        values[standing.value] = speedups_said(standing_in(cells, standing))
    carry = {cell.standing for cell in carrying}
    values["others"] = tuple(
        said(f"effect.other.{standing.value}", cells=values[standing.value])
        for standing in (Standing.EQUAL, Standing.OPEN, Standing.MISSING)
        if values[standing.value] and standing not in carry
    )
    values["low"], values["high"] = load_said(cells[0]), load_said(cells[-1])
    further = [c.decision.further_pairs for c in cells if c.standing is Standing.OPEN]
    values["further_pairs"] = (
        said("pairs.unknown")
        if None in further or not further
        else said("pairs.further", pairs=max(n for n in further if n is not None))
    )
    return Conclusion(
        kind=Kind.EFFECT,
        key=key,
        tone=tone,
        conditions=conditions_of(result, trials_of(cells)),
        values=values,
        confidence=confidence_of(result, trials_of(carried)) if told(carried) else None,
        evidence=ids(trials_of(cells)),
        not_measured=(*beyond(result, trials_of(cells)), *_holes(cells)),
    )


def _rule(cells: Sequence[CellAt]) -> tuple[str, Tone, list[CellAt]]:
    """(message key, tone, the cells that carry it).

    A direction is claimed for exactly those loads whose own corrected verdict says so; whatever is
    open or missing is named beside it.
    """
    by = {standing: standing_in(cells, standing) for standing in Standing}
    faster, slower, equal = by[Standing.FASTER], by[Standing.SLOWER], by[Standing.EQUAL]
    several = "throughout" if len(cells) > 1 else "here"
    if len(by[Standing.MISSING]) == len(cells):
        return "effect.not_measured", "unknown", []
    if not (faster or slower or equal):
        return "effect.cannot_tell", "unknown", []
    if faster and slower:
        order = [c.standing for c in cells if c.standing in (Standing.FASTER, Standing.SLOWER)]
        runs = [standing for standing, _ in groupby(order)]
        if runs == [Standing.FASTER, Standing.SLOWER]:
            return "effect.falls", "neutral", [*faster, *slower]
        if runs == [Standing.SLOWER, Standing.FASTER]:
            return "effect.rises", "neutral", [*faster, *slower]
        return "effect.contradictory", "warning", [*faster, *slower]
    for chosen, name, tone in (
        (faster, "faster", "for"),
        (slower, "slower", "against"),
        (equal, "equal", "neutral"),
    ):
        if chosen:
            whole = len(chosen) == len(cells)
            key = f"effect.{name}_{several}" if whole else f"effect.{name}_partly"
            return key, _tone(tone), chosen
    raise AssertionError("some cell has a standing")


def _tone(name: str) -> Tone:
    return "for" if name == "for" else "against" if name == "against" else "neutral"


def _holes(cells: Sequence[CellAt]) -> Iterator[Message]:
    for cell in standing_in(cells, Standing.MISSING):
        yield speedups_said([cell])[0]


def _metric(cells: Sequence[CellAt]) -> Message:
    return said(f"metric.{cells[0].decision.metric}")


def _trend(result: SweepResult, cells: Sequence[CellAt]) -> Iterator[Conclusion]:
    """High concurrency or low latency, when the two ends of the ladder are told apart.

    Rule: the interval of (speedup at the highest load / at the lowest) lies wholly on one side of
    1, and the better end is called faster while the other is not.
    """
    ends = [cell for cell in cells if cell.estimate is not None and cell.estimate.low > 0]
    if len(ends) < 2:
        return
    lowest, highest = ends[0], ends[-1]
    if lowest.estimate is None or highest.estimate is None:
        return
    change = ratio(highest.estimate, lowest.estimate)
    if change.low > 1 and _only(highest, lowest):
        key = "effect.fits_high_load"
    elif change.high < 1 and _only(lowest, highest):
        key = "effect.fits_low_load"
    else:
        return
    both = [lowest, highest]
    yield Conclusion(
        kind=Kind.EFFECT,
        key=key,
        tone="neutral",
        conditions=conditions_of(result, trials_of(both)),
        values={
            **subject(cells),
            "metric": _metric(cells),
            "at_low": speedups_said([lowest])[0],
            "at_high": speedups_said([highest])[0],
        },
        confidence=confidence_of(result, trials_of(both)),
        evidence=ids(trials_of(both)),
        not_measured=beyond(result, trials_of(cells)),
    )


def _only(better: CellAt, worse: CellAt) -> bool:
    return better.standing is Standing.FASTER and worse.standing is not Standing.FASTER


def _trade_offs(result: SweepResult, cells: Sequence[CellAt]) -> Iterator[Conclusion]:
    """Figures that contradict the headline: faster by one, slower by another.

    The other figures are not corrected over the cells; the sentence says so.
    """
    found: list[CellAt] = []
    items: list[Message] = []
    opposite = {Standing.FASTER: Verdict.SLOWER, Standing.SLOWER: Verdict.FASTER}
    for cell in cells:
        if cell.standing not in opposite:
            continue
        against = [
            name
            for name in SPEEDUPS
            if name != cell.decision.metric
            and cell.result.decisions[name].verdict is opposite[cell.standing]
        ]
        if not against:
            continue
        found.append(cell)
        for name in against:
            d = cell.result.decisions[name]
            assert d.speedup is not None and d.low is not None and d.high is not None
            items.append(
                said(
                    "cell.metric",
                    load=load_said(cell),
                    metric=said(f"metric.{name}"),
                    speedup=d.speedup,
                    low=d.low,
                    high=d.high,
                )
            )
    if found:
        yield Conclusion(
            kind=Kind.EFFECT,
            key="effect.trade_off",
            tone="warning",
            conditions=conditions_of(result, trials_of(found)),
            values={**subject(cells), "metric": _metric(cells), "others": tuple(items)},
            confidence=confidence_of(result, trials_of(found)),
            evidence=ids(trials_of(found)),
        )
