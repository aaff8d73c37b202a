"""Which cells of a sweep may be called faster or slower, given that there are many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from orchestrator.analyse.adjusted_p_values import benjamini_hochberg, holm
from orchestrator.analyse.further_pairs import pairs_needed
from orchestrator.decide.verdict import Decision, Verdict

Correction = Literal["benjamini-hochberg", "holm"]

DEFAULT: Correction = "benjamini-hochberg"
"""Each cell is a decision of its own, so what counts is the share of wrong calls among the calls
made (false discovery rate); the best cell is confirmed separately. When no cell differs, it also
keeps the chance of any call at alpha. Valid for independent and positively dependent cells."""

CALLED = (Verdict.FASTER, Verdict.SLOWER)


def rejected(p_values: Sequence[float], alpha: float, method: Correction = DEFAULT) -> list[bool]:
    """Which hypotheses are rejected at `alpha` after correction.

    Formula: adjusted p <= alpha (`analyse.adjusted_p_values`)
    Raises: ValueError for a p-value outside [0, 1].
    """
    if not p_values:
        return []
    adjusted = benjamini_hochberg(p_values) if method == "benjamini-hochberg" else holm(p_values)
    return [p <= alpha for p in adjusted]


def corrected(
    cells: Mapping[str, Decision], *, confidence: float, method: Correction = DEFAULT
) -> dict[str, Decision]:
    """The decisions of a sweep after correction over its cells.

    A cell called faster or slower on its own, whose sequential p-value does not survive, becomes
    "cannot tell", with a note and the pairs that would carry it. Nothing else changes: a correction
    never makes a call. "No practical difference" is a claim of equality and is not corrected.
    Hand in every comparison of the sweep, the undecided too; A/A controls and confirmations stay
    outside.
    """
    names = list(cells)
    p_values = [cells[name].p_value for name in names]
    survives = dict(zip(names, rejected(p_values, 1 - confidence, method), strict=True))
    ranks = {name: k for k, name in enumerate(sorted(names, key=lambda n: cells[n].p_value), 1)}
    return {
        name: decision
        if decision.verdict not in CALLED or survives[name]
        else _withheld(decision, ranks[name], len(names), 1 - confidence, method)
        for name, decision in cells.items()
    }


def best_candidate(cells: Mapping[str, Decision]) -> str | None:
    """The cell to confirm on prompts not used before: the best lower end among those called faster.

    The lower end, not the estimate: the largest estimate of many is the luckiest one as well.
    Undefined: no cell is called faster. Ties go to the larger estimate, then to the first name.
    """
    faster = [name for name, decision in cells.items() if decision.verdict is Verdict.FASTER]
    if not faster:
        return None
    return min(faster, key=lambda n: (-(cells[n].low or 0.0), -(cells[n].speedup or 0.0), n))


def _threshold(rank: int, of: int, alpha: float, method: Correction) -> float:
    return alpha * rank / of if method == "benjamini-hochberg" else alpha / (of - rank + 1)


def _withheld(decision: Decision, rank: int, of: int, alpha: float, method: Correction) -> Decision:
    needed = _threshold(rank, of, alpha, method)
    further = None
    if decision.interval is not None:
        stricter = replace(decision.plan, confidence=1 - needed)
        further = pairs_needed(decision.interval, stricter, decision.log_margin)
    note = (
        f"{decision.verdict} on its own (p = {decision.p_value:.2g}), but not among {of} cells "
        f"({method}: p <= {needed:.2g} needed)"
    )
    return replace(
        decision,
        verdict=Verdict.CANNOT_TELL,
        alone=decision.verdict,
        further_pairs=further,
        notes=(*decision.notes, note),
    )
