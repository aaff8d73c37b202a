"""Triage: why did two greedy answers part? The target's own log-probabilities decide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.analyse.agreement import Agreement, PromptAgreement

EXACT_TIE_NATS = 1e-6
"""Log-probabilities travel as decimal text; below this they are the same number."""

NEAR_TIE_NATS: Mapping[str, float] = {"bfloat16": 0.25, "float16": 0.03125, "float32": 0.001}
"""By the dtype that the target computes in: two units in the last place of a logit between 16 and
32 (bfloat16 2 · 2^-3, float16 2 · 2^-6), which is how far another order of summation moves it.
float32 would be 4e-6 by that rule; the sums inside the network lose more, so 0.001."""


class Cause(StrEnum):
    """What a divergence is."""

    EXACT_TIE = "exact tie"
    NEAR_TIE = "near tie"
    REAL = "real"
    NOT_TRIAGED = "not triaged"


@dataclass(frozen=True, slots=True)
class Margin:
    """The target's natural log-probabilities at the first divergence, from a second pass.

    The second pass gives the target (without speculation) the prompt and the common part of the
    two answers, and reads how it would go on. An answer that ended there chose the end token.
    """

    baseline_logprob: float
    other_logprob: float
    top_logprob: float | None = None
    """Of the most probable token; None = not handed in: the larger of the two."""

    def __post_init__(self) -> None:
        for value in (self.baseline_logprob, self.other_logprob, self.top_logprob):
            if value is not None and (math.isnan(value) or value > 1e-3):
                raise ValueError(f"a log-probability must be <= 0, got {value} in {self}")

    @property
    def nats(self) -> float:
        """Formula: ln p(baseline's token) − ln p(the other's). Unit: nats."""
        return self.baseline_logprob - self.other_logprob

    @property
    def baseline_deficit(self) -> float:
        """How far the baseline's token is below the most probable one. Unit: nats, >= 0."""
        return self._top - self.baseline_logprob

    @property
    def other_deficit(self) -> float:
        """How far the other arm's token is below the most probable one. Unit: nats, >= 0."""
        return self._top - self.other_logprob

    def is_tie(self, near_tie_nats: float) -> bool:
        """Whether both tokens are so near the most probable one that either may come."""
        return max(self.baseline_deficit, self.other_deficit) <= near_tie_nats

    @property
    def _top(self) -> float:
        given = -math.inf if self.top_logprob is None else self.top_logprob
        return max(given, self.baseline_logprob, self.other_logprob)


@dataclass(frozen=True, slots=True)
class Divergence:
    """One prompt whose answers part, and why."""

    agreement: PromptAgreement
    cause: Cause
    margin: Margin | None
    why: str

    @property
    def prompt_id(self) -> str:
        return self.agreement.prompt_id


def triage(prompt: PromptAgreement, margin: Margin | None, near_tie_nats: float) -> Divergence:
    """What the divergence of one prompt is.

    Formula, with d_b and d_o the distances of the two tokens below the target's most probable one:
        d_b > near_tie_nats: not triaged (the second pass does not reproduce the baseline's choice)
        d_o > near_tie_nats: real
        both <= 1e-6: exact tie; else near tie
    Equal tokens with unequal text are real: no tie explains them. Without a margin: not triaged.
    Raises: ValueError for a prompt that did not diverge, or a tolerance below the exact tie's.
    """
    if near_tie_nats < EXACT_TIE_NATS:
        raise ValueError(f"near_tie_nats: must be >= {EXACT_TIE_NATS:g}, got {near_tie_nats:g}")
    if prompt.equal:
        raise ValueError(f"{prompt.prompt_id}: the answers are equal; there is nothing to triage")
    if prompt.first_divergence is None:
        return Divergence(prompt, Cause.REAL, margin, "the tokens are equal, the text is not")
    if margin is None:
        return Divergence(prompt, Cause.NOT_TRIAGED, None, "no second pass")
    if margin.baseline_deficit > near_tie_nats:
        why = (
            f"the second pass does not reproduce the baseline, whose token is "
            f"{margin.baseline_deficit:.3g} nats below the most probable one"
        )
        return Divergence(prompt, Cause.NOT_TRIAGED, margin, why)
    if margin.other_deficit > near_tie_nats:
        why = f"its token is {margin.other_deficit:.3g} nats below the most probable one"
        return Divergence(prompt, Cause.REAL, margin, why)
    largest = max(margin.baseline_deficit, margin.other_deficit)
    cause = Cause.EXACT_TIE if largest <= EXACT_TIE_NATS else Cause.NEAR_TIE
    return Divergence(prompt, cause, margin, f"margin {margin.nats:+.3g} nats")


def triage_all(
    agreed: Agreement, margins: Mapping[str, Margin], near_tie_nats: float
) -> tuple[Divergence, ...]:
    """Every divergence of an arm, in the order of its prompts.

    Raises: ValueError for a margin of a prompt that did not diverge (it would be of another run).
    """
    diverged = {prompt.prompt_id for prompt in agreed.diverged}
    strange = [prompt_id for prompt_id in margins if prompt_id not in diverged]
    if strange:
        raise ValueError(
            f"{agreed.name}: margins must belong to prompts that diverged, but got one for "
            f"{strange[0]!r}; were they read for another run?"
        )
    return tuple(triage(p, margins.get(p.prompt_id), near_tie_nats) for p in agreed.diverged)
