"""The sweep in one statement: may it be used at all, and where does speculation pay."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.decide.conclusion import Conclusion, Kind, Tone
from orchestrator.decide.conditions import (
    beyond,
    conditions_of,
    confidence_of,
    control_state,
    ids,
)
from orchestrator.decide.message import Message, Value, said
from orchestrator.decide.standing import Standing, cell_at, standing_in, told, trials_of
from orchestrator.decide.suites import suite_said, suites_of
from orchestrator.decide.sweep_result import SweepResult


def overall(result: SweepResult) -> Conclusion:
    """What a reader who reads one sentence must read."""
    cells = [cell_at(result, trial) for trial in result.trials]
    by = {standing: standing_in(cells, standing) for standing in Standing}
    values: dict[str, Value] = {name.value: len(found) for name, found in by.items()}
    values["cells"] = len(cells)
    values["rest"] = _rest({name: len(found) for name, found in by.items()})
    key, tone = _rule(result, values)
    carrying = by[Standing.FASTER] + by[Standing.SLOWER] or by[Standing.EQUAL]
    if key == "overall.control_failed":
        control = result.control()
        assert control is not None and control.interval is not None
        values |= {"control_low": control.interval.low, "control_high": control.interval.high}
        carrying = []
    worse = [suite for suite in suites_of(result) if suite.ok is False]
    if worse:
        values["suites"] = tuple(
            said("suite.on", suite=suite_said(suite.suite), label=suite.label) for suite in worse
        )
    return Conclusion(
        kind=Kind.OVERALL,
        key=key,
        tone=tone,
        conditions=conditions_of(result, result.trials),
        values=values,
        confidence=confidence_of(result, trials_of(carrying)) if carrying else None,
        evidence=ids(trials_of(carrying or told(cells) or cells)),
        not_measured=(
            *beyond(result, result.trials),
            *([] if suites_of(result) else [said("gap.quality")]),
        ),
    )


def _rest(counts: Mapping[Standing, int]) -> Message:
    """How many cells are neither faster nor slower, by what they are; nothing of those that are
    none."""
    parts = tuple(
        said(f"overall.rest.{standing.value}", count=counts[standing])
        for standing in (Standing.EQUAL, Standing.OPEN, Standing.MISSING)
        if counts[standing]
    )
    return said("overall.among_rest", parts=parts) if parts else said("value.none")


def _rule(result: SweepResult, counts: dict[str, Value]) -> tuple[str, Tone]:
    faster, slower, equal = (counts[s.value] for s in (Standing.FASTER, Standing.SLOWER,
                                                       Standing.EQUAL))  # fmt: skip
    if not result.trials:
        return "overall.nothing_planned", "unknown"
    if counts["missing"] == counts["cells"]:
        return "overall.nothing_measured", "unknown"
    if control_state(result) == "failed":
        return "overall.control_failed", "warning"
    if not (faster or slower or equal):
        return "overall.cannot_tell", "unknown"
    if faster and any(suite.ok is False for suite in suites_of(result)):
        return "overall.faster_but_findings", "warning"
    if faster and slower:
        return "overall.depends", "neutral"
    if faster:
        whole = faster == counts["cells"]
        return ("overall.faster" if whole else "overall.faster_in_part"), "for"
    if slower:
        return "overall.no_gain", "against"
    return "overall.equal", "neutral"
