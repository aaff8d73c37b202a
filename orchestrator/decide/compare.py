"""Two sweeps (or a sweep and a stored decision) cell by cell: what changed, and how surely."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from scipy.special import ndtr, ndtri

from orchestrator.analyse.adjusted_p_values import benjamini_hochberg
from orchestrator.analyse.boundaries import LookPlan
from orchestrator.analyse.interval import p_value_beyond, repeated_interval
from orchestrator.analyse.pairs import SPEEDUPS
from orchestrator.analyse.rung import Estimate, ratio
from orchestrator.decide.measured_cell import (
    DECIDES,
    HIGHER_IS_BETTER,
    OF_AN_ARM,
    MeasuredCell,
)
from orchestrator.decide.side import Side, SuiteSeen

PAIRS_MIN = 3
"""Fewer common prompts, and the two sides are compared as independent."""


class Change(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NONE = "no practical difference"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class FigureChange:
    """One figure of one cell on both sides."""

    name: str
    before: Estimate
    after: Estimate
    ratio: Estimate
    """after / before."""
    paired: int
    """Pairs of blocks with the same prompts; 0 = compared as independent estimates."""
    change: Change
    decides: bool
    """Whether a regression of this figure is one of the whole comparison."""
    p_value: float
    """Of "the ratio lies within the margin"."""
    corrected: bool = False
    """Called better or worse by itself, but not among all deciding figures."""


@dataclass(frozen=True)
class CellChange:
    label: str
    before: MeasuredCell
    after: MeasuredCell
    figures: tuple[FigureChange, ...]
    same_prompts: bool

    @property
    def regressed(self) -> bool:
        return self.now_fails or any(f.decides and f.change is Change.WORSE for f in self.figures)

    @property
    def improved(self) -> bool:
        better = any(f.decides and f.change is Change.BETTER for f in self.figures)
        return better and not self.regressed

    @property
    def now_fails(self) -> bool:
        """Measured before, and ended in a failure now."""
        return self.after.failure is not None and bool(self.before.figures)


@dataclass(frozen=True)
class FactChange:
    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Comparison:
    """`facts` first: what differs between the two is what may explain the rest."""

    before: Side
    after: Side
    facts: tuple[FactChange, ...]
    cells: tuple[CellChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    suites: tuple[tuple[SuiteSeen, SuiteSeen], ...]
    """Whose judgement differs: before, after."""
    margin: float
    confidence: float

    @property
    def compared(self) -> bool:
        """Whether any figure stands on both sides."""
        return any(cell.figures or cell.now_fails for cell in self.cells)

    @property
    def regressions(self) -> tuple[str, ...]:
        """Labels of cells and suites that are worse now."""
        cells = [cell.label for cell in self.cells if cell.regressed]
        suites = [
            f"{now.suite} ({now.label})" for then, now in self.suites if then.ok and now.ok is False
        ]
        return (*cells, *suites)


def compare(before: Side, after: Side, *, margin: float | None = None) -> Comparison:
    """Match the cells of both sides and judge every figure.

    `margin`: of practical equality; default: the one the later side was measured with.
    A figure is better or worse when its whole interval lies beyond the margin *and* it survives
    Benjamini-Hochberg over all deciding figures (the headline speedup, and the speculative arm's
    own figure behind it); figures that do not decide are shown uncorrected.
    """
    mine = {cell.key: cell for cell in before.cells}
    its = {cell.key: cell for cell in after.cells}
    common = [key for key in mine if key in its]
    first = next(iter(after.cells), None)
    bound = margin if margin is not None else (first.margin if first else 0.03)
    confidence = first.confidence if first else 0.95
    cells = [_cell(mine[key], its[key], bound, confidence) for key in common]
    return Comparison(
        before=before,
        after=after,
        facts=tuple(fact_changes(before.facts, after.facts)),
        cells=tuple(_corrected(cells, 1 - confidence)),
        only_before=tuple(mine[key].label for key in mine if key not in its),
        only_after=tuple(its[key].label for key in its if key not in mine),
        suites=tuple(_suite_changes(before.suites, after.suites)),
        margin=bound,
        confidence=confidence,
    )


def fact_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FactChange]:
    """Facts that differ; one that a side does not know is None there."""
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield FactChange(name, before.get(name), after.get(name))


def _cell(
    before: MeasuredCell, after: MeasuredCell, margin: float, confidence: float
) -> CellChange:
    headline = (after.metric, f"speculative/{DECIDES[after.metric]}")
    names = [
        *headline,
        *(name for name in SPEEDUPS if name not in headline),
        *(
            f"{arm}/{name}"
            for name in (*OF_AN_ARM, "acceptance_length")
            for arm in ("baseline", "speculative")
            if f"{arm}/{name}" not in headline
        ),
    ]
    return CellChange(
        label=after.label,
        before=before,
        after=after,
        figures=tuple(
            _figure(name, before, after, margin, confidence, decides=name in headline)
            for name in names
            if name in before.figures and name in after.figures
        ),
        same_prompts=before.prompts_hash == after.prompts_hash,
    )


def _figure(
    name: str,
    before: MeasuredCell,
    after: MeasuredCell,
    margin: float,
    confidence: float,
    *,
    decides: bool,
) -> FigureChange:
    first, second = before.series.get(name, {}), after.series.get(name, {})
    asked = [key for key in first if key in second]
    log_margin = math.log1p(margin)
    if len(asked) >= PAIRS_MIN:
        logs = [second[key] - first[key] for key in asked]
        plan = LookPlan(confidence, len(logs), len(logs))
        interval = repeated_interval(logs, plan)
        assert interval is not None
        change, paired = Estimate.of(interval), len(logs)
        p_value = p_value_beyond(logs, plan, log_margin)
    else:
        change, paired = ratio(after.figures[name], before.figures[name]), 0
        p_value = _p_value(change, log_margin, confidence)
    return FigureChange(
        name=name,
        before=before.figures[name],
        after=after.figures[name],
        ratio=change,
        paired=paired,
        change=_judged(change, log_margin, higher=name.split("/")[-1] in HIGHER_IS_BETTER),
        decides=decides,
        p_value=p_value,
    )


def _judged(change: Estimate, log_margin: float, *, higher: bool) -> Change:
    low, high = math.log(change.low), math.log(change.high)
    if not higher:
        low, high = -high, -low
    if low > log_margin:
        return Change.BETTER
    if high < -log_margin:
        return Change.WORSE
    return Change.NONE if -log_margin <= low and high <= log_margin else Change.CANNOT_TELL


def _p_value(change: Estimate, log_margin: float, confidence: float) -> float:
    """Of independent estimates: the normal approximation that their interval implies."""
    error = math.log(change.high / change.low) / (2 * float(ndtri((1 + confidence) / 2)))
    beyond = abs(math.log(change.value)) - log_margin
    if beyond <= 0:
        return 1.0
    return 0.0 if error == 0 else float(2 * ndtr(-beyond / error))


def _corrected(cells: Sequence[CellChange], alpha: float) -> Iterator[CellChange]:
    called = (Change.BETTER, Change.WORSE)
    deciding = [
        (i, j) for i, cell in enumerate(cells) for j, f in enumerate(cell.figures) if f.decides
    ]
    p_values = [cells[i].figures[j].p_value for i, j in deciding]
    adjusted = dict(zip(deciding, benjamini_hochberg(p_values) if p_values else [], strict=True))
    for i, cell in enumerate(cells):
        yield replace(
            cell,
            figures=tuple(
                replace(f, change=Change.CANNOT_TELL, corrected=True)
                if f.change in called and adjusted.get((i, j), 0.0) > alpha
                else f
                for j, f in enumerate(cell.figures)
            ),
        )


def _suite_changes(
    before: Sequence[SuiteSeen], after: Sequence[SuiteSeen]
) -> Iterator[tuple[SuiteSeen, SuiteSeen]]:
    earlier = {(suite.suite, suite.label): suite for suite in before}
    for suite in after:
        then = earlier.get((suite.suite, suite.label))
        if then is not None and (then.ok, then.verdict) != (suite.ok, suite.verdict):
            yield then, suite
