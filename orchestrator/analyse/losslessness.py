"""At temperature 0: is the speculative arm's output the target's own? One of four verdicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.analyse.agreement import Agreement
from orchestrator.analyse.divergence import NEAR_TIE_NATS, Cause, Divergence, Margin, triage_all
from orchestrator.analyse.exact_tests import fisher, mcnemar

LEVEL = 0.01
"""Chance of wrongly calling an arm "not lossless" by its rate alone."""
PROMPTS_MIN = 20
"""Fewer equal answers say little: with 20, a rate of divergence of 13.9 % may still hide (95 %)."""


class Losslessness(StrEnum):
    """What may be said of the speculative arm's greedy output."""

    LOSSLESS = "lossless"
    EQUAL_UP_TO_TIES = "equal up to ties"
    NOT_LOSSLESS = "not lossless"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Floor:
    """The baseline against itself: relaunched, or at another batch size."""

    agreement: Agreement
    same_batch: bool
    """True: only relaunched. False: at another batch size, which changes the order of summation
    as verifying several tokens at once does, and so is the fairer floor."""
    margins: Mapping[str, Margin] | None = None


@dataclass(frozen=True, slots=True)
class FloorComparison:
    """The speculative arm's divergences beside those of a floor."""

    name: str
    exact_match_rate: float | None
    same_batch: bool
    only_speculative: int
    """Prompts on which only the speculative arm diverged (paired: over the common prompts)."""
    only_floor: int
    p_value: float
    """One-sided: "the speculative arm diverges no more often than this floor"."""
    test: str


@dataclass(frozen=True, slots=True)
class LosslessnessReport:
    """A verdict and everything it rests on."""

    verdict: Losslessness
    agreement: Agreement
    floors: tuple[FloorComparison, ...]
    divergences: tuple[Divergence, ...]
    offending: tuple[Divergence, ...]
    """What convicts: the real divergences, or, by the rate alone, all that were not triaged."""
    level: float
    near_tie_nats: float
    reasons: tuple[str, ...]

    def count(self, cause: Cause) -> int:
        return sum(divergence.cause is cause for divergence in self.divergences)


def losslessness(
    agreed: Agreement,
    floors: Sequence[Floor] = (),
    *,
    margins: Mapping[str, Margin] | None = None,
    near_tie_nats: float = NEAR_TIE_NATS["bfloat16"],
    level: float = LEVEL,
    prompts_min: int = PROMPTS_MIN,
) -> LosslessnessReport:
    """The verdict on an arm's agreement with the baseline.

    Rules, the first that applies:
        1. a divergence is real, and no floor has a real one: not lossless
        2. divergences are real, in a floor too: not lossless if more prompts than in every floor
           (exact test at `level`), else cannot tell (the baseline does not reproduce itself)
        3. not every divergence is triaged: not lossless if the arm diverges on more prompts than
           every floor, one at another batch size among them (exact test at `level`); else cannot
           tell: only the second pass separates ties from errors
        4. fewer than `prompts_min` prompts in common: cannot tell
        5. divergences, all of them ties: equal up to ties; none: lossless
    Ties are no fault: at a tie the target itself names no winner, and the order of summation does.
    """
    divergences = triage_all(agreed, margins or {}, near_tie_nats)
    real = tuple(d for d in divergences if d.cause is Cause.REAL)
    untriaged = tuple(d for d in divergences if d.cause is Cause.NOT_TRIAGED)
    compared = tuple(compare_with_floor(agreed, floor) for floor in floors)
    verdict, offending, why = _verdict(
        agreed, floors, compared, real, untriaged, near_tie_nats, level, prompts_min
    )
    notes = [why]
    if agreed.missing:
        notes.append(f"{len(agreed.missing)} prompts were answered by one arm only and left out")
    if any(prompt.unit == "character" for prompt in agreed.prompts):
        notes.append("compared by characters where the server gave no token ids")
    return LosslessnessReport(
        verdict=verdict,
        agreement=agreed,
        floors=compared,
        divergences=divergences,
        offending=offending,
        level=level,
        near_tie_nats=near_tie_nats,
        reasons=tuple(notes),
    )


def compare_with_floor(agreed: Agreement, floor: Floor) -> FloorComparison:
    """Does the arm diverge on more prompts than the baseline does from itself?"""
    return _compare_flags(
        agreed, {p.prompt_id for p in agreed.diverged}, floor, _diverged(floor.agreement)
    )


def _compare_flags(
    agreed: Agreement, flagged: Collection[str], floor: Floor, floor_flagged: Collection[str]
) -> FloorComparison:
    """McNemar over the common prompts (a prompt with a near tie parts in both); Fisher without.

    The flags of a prompt are exchangeable when the arm is one more baseline: both share the
    baseline's answer, so the pairs that differ fall either way with chance 1/2.
    """
    asked = {p.prompt_id for p in agreed.prompts}
    floor_asked = {p.prompt_id for p in floor.agreement.prompts}
    common = asked & floor_asked
    mine, its = set(flagged), set(floor_flagged)
    if common:
        only, only_floor = len(common & (mine - its)), len(common & (its - mine))
        p_value, test = mcnemar(only, only_floor, "greater"), "exact McNemar, one-sided"
    else:
        only, only_floor = len(mine), len(its)
        p_value = fisher(only, len(asked), only_floor, len(floor_asked), "greater")
        test = "Fisher, one-sided"
    return FloorComparison(
        name=floor.agreement.name,
        exact_match_rate=floor.agreement.exact_match_rate,
        same_batch=floor.same_batch,
        only_speculative=only,
        only_floor=only_floor,
        p_value=p_value,
        test=test,
    )


def _verdict(
    agreed: Agreement,
    floors: Sequence[Floor],
    compared: Sequence[FloorComparison],
    real: tuple[Divergence, ...],
    untriaged: tuple[Divergence, ...],
    near_tie_nats: float,
    level: float,
    prompts_min: int,
) -> tuple[Losslessness, tuple[Divergence, ...], str]:
    if real:
        return _on_real(agreed, floors, real, near_tie_nats, level)
    if untriaged:
        return _on_untriaged(compared, untriaged, level)
    prompts = len(agreed.prompts)
    if prompts < prompts_min:
        why = f"{prompts} prompts were answered by both arms; at least {prompts_min} are needed"
        return Losslessness.CANNOT_TELL, (), why
    if agreed.diverged:
        why = (
            f"{len(agreed.diverged)} of {prompts} prompts part, each at a tie of the target "
            f"(within {near_tie_nats:g} nats)"
        )
        return Losslessness.EQUAL_UP_TO_TIES, (), why
    low, _ = agreed.exact_match_interval(0.90) or (0.0, 1.0)
    why = (
        f"all {prompts} prompts are equal; at 95 % confidence fewer than {1 - low:.1%} of such "
        "prompts diverge"
    )
    return Losslessness.LOSSLESS, (), why


def _on_real(
    agreed: Agreement,
    floors: Sequence[Floor],
    real: tuple[Divergence, ...],
    near_tie_nats: float,
    level: float,
) -> tuple[Losslessness, tuple[Divergence, ...], str]:
    flagged = {d.prompt_id for d in real}
    its_real = [_real(floor, near_tie_nats) for floor in floors]
    if not any(its_real):
        why = f"{len(real)} prompts part where the target has a clear choice"
        return Losslessness.NOT_LOSSLESS, real, why
    # An intersection-union test: the arm must exceed every floor that has real divergences, so
    # the largest p-value keeps the level without a correction.
    p_value = max(
        _compare_flags(agreed, flagged, floor, found).p_value
        for floor, found in zip(floors, its_real, strict=True)
        if found
    )
    if p_value <= level:
        why = (
            f"{len(real)} prompts part where the target has a clear choice, more than of the "
            f"baseline from itself (p = {p_value:.2g})"
        )
        return Losslessness.NOT_LOSSLESS, real, why
    why = (
        "the baseline parts from itself where it has a clear choice, too; find out why before "
        f"judging speculation (more often with it: p = {p_value:.2g})"
    )
    return Losslessness.CANNOT_TELL, (), why


def _on_untriaged(
    compared: Sequence[FloorComparison], untriaged: tuple[Divergence, ...], level: float
) -> tuple[Losslessness, tuple[Divergence, ...], str]:
    begun = f"{len(untriaged)} divergences are not triaged"
    if all(floor.same_batch for floor in compared):
        why = f"{begun}, and the baseline was not measured at another batch size"
        return Losslessness.CANNOT_TELL, (), f"{why}; run the second pass"
    p_value = max(floor.p_value for floor in compared)
    if p_value <= level:
        why = f"{begun}; the arm parts more often than the baseline from itself (p = {p_value:.2g})"
        return Losslessness.NOT_LOSSLESS, untriaged, why
    why = (
        f"{begun}, but they are not more than the baseline's from itself can explain "
        f"(p = {p_value:.2g}, {level:g} needed); run the second pass"
    )
    return Losslessness.CANNOT_TELL, (), why


def _diverged(agreed: Agreement) -> set[str]:
    return {prompt.prompt_id for prompt in agreed.diverged}


def _real(floor: Floor, near_tie_nats: float) -> set[str]:
    if floor.margins is None:
        return set()
    found = triage_all(floor.agreement, floor.margins, near_tie_nats)
    return {divergence.prompt_id for divergence in found if divergence.cause is Cause.REAL}
