"""Does the gain hold over input length: tens of tokens against thousands?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.analyse.rung import ratio
from orchestrator.decide.conclusion import Conclusion, Kind, Tone
from orchestrator.decide.conditions import (
    beyond,
    conditions_of,
    confidence_of,
    ids,
    input_length,
    prompt_source,
)
from orchestrator.decide.message import Message, said
from orchestrator.decide.standing import (
    CellAt,
    Standing,
    cell_at,
    load_said,
    speedups_said,
    trials_of,
)
from orchestrator.decide.sweep_result import SweepResult

APART = 1.5
"""Two workloads count as of different length when their medians are this factor apart."""


@dataclass(frozen=True)
class _Ends:
    """The shortest and the longest input at one load."""

    short: CellAt
    long: CellAt

    @property
    def change(self) -> str:
        """grows, falls or untold: what the interval of long/short allows."""
        a, b = self.long.estimate, self.short.estimate
        if a is None or b is None or a.low <= 0 or b.low <= 0:
            return "untold"
        change = ratio(a, b)
        return "grows" if change.low > 1 else "falls" if change.high < 1 else "untold"


def effects_over_length(result: SweepResult) -> Iterator[Conclusion]:
    """For every deployment and temperature with more than one length; else that there is one."""
    groups: dict[tuple[str, float], list[CellAt]] = defaultdict(list)
    for trial in result.trials:
        key = (trial.trial.pair.key, trial.trial.cell.sampling.temperature)
        groups[key].append(cell_at(result, trial))
    found = False
    for cells in groups.values():
        ends = list(_ends(result, cells))
        if ends:
            found = True
            yield _conclusion(result, cells, ends)
    if result.trials and not found:
        yield Conclusion(
            kind=Kind.EFFECT,
            key="length.not_measured",
            tone="unknown",
            conditions=conditions_of(result, result.trials),
            not_measured=beyond(result, result.trials),
        )


def _ends(result: SweepResult, cells: Sequence[CellAt]) -> Iterator[_Ends]:
    by_load: dict[object, list[CellAt]] = defaultdict(list)
    for cell in cells:
        trial = cell.result.trial
        by_load[(trial.cell.load, trial.cell.batch_size)].append(cell)
    for at_load in by_load.values():
        known = [
            (length, cell)
            for cell in at_load
            if cell.standing is not Standing.MISSING
            and (length := input_length(result.manifest, cell.result.trial.cell.workload.name))
        ]
        if len(known) < 2:
            continue
        known.sort(key=lambda pair: pair[0])
        if known[-1][0] >= APART * known[0][0]:
            yield _Ends(known[0][1], known[-1][1])


def _conclusion(result: SweepResult, cells: Sequence[CellAt], ends: Sequence[_Ends]) -> Conclusion:
    used = [cell for end in ends for cell in (end.short, end.long)]
    changes = {end.change for end in ends}
    tone: Tone = "neutral"
    if all(cell.standing is Standing.FASTER for cell in used):
        key, tone = "length.holds", "for"
    elif changes == {"grows"}:
        key = "length.grows"
    elif changes == {"falls"}:
        key = "length.falls"
    elif changes == {"untold"}:
        key, tone = "length.cannot_tell", "unknown"
    elif {"grows", "falls"} <= changes:
        key, tone = "length.contradictory", "warning"
    else:
        key = "length.depends_on_load"
    trial = cells[0].result.trial
    return Conclusion(
        kind=Kind.EFFECT,
        key=key,
        tone=tone,
        conditions=conditions_of(result, trials_of(used)),
        values={
            "draft": trial.pair.speculative.label(),
            "temperature": trial.cell.sampling.temperature,
            "per_load": tuple(_at_load(result, end) for end in ends),
        },
        confidence=confidence_of(result, trials_of(used)),
        evidence=ids(trials_of(used)),
        not_measured=(*beyond(result, trials_of(used)), *_confounded(result, ends)),
    )


def _at_load(result: SweepResult, end: _Ends) -> Message:
    names = [cell.result.trial.cell.workload.name for cell in (end.short, end.long)]
    lengths = [input_length(result.manifest, name) or 0.0 for name in names]
    return said(
        "length.at_load",
        load=load_said(end.short),
        change=said(f"length.change.{end.change}"),
        short=names[0],
        short_tokens=round(lengths[0]),
        short_speedup=speedups_said([end.short])[0],
        long=names[1],
        long_tokens=round(lengths[1]),
        long_speedup=speedups_said([end.long])[0],
    )


def _confounded(result: SweepResult, ends: Sequence[_Ends]) -> Iterator[Message]:
    """Workloads of different prompts differ in more than their length."""
    for end in ends:
        names = [cell.result.trial.cell.workload.name for cell in (end.short, end.long)]
        sources = {prompt_source(result.manifest, name) for name in names}
        if len(sources) > 1 or None in sources:
            yield said("gap.length_and_topic", short=names[0], long=names[1])
            return
