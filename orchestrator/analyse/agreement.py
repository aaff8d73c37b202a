"""Do two sets of answers to the same prompts agree, token by token?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.analyse.exact_tests import proportion_interval
from orchestrator.records import RequestRecord
from orchestrator.run.suites.completion import first_divergence

Unit = Literal["token", "character"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one arm answered to one prompt."""

    prompt_id: str
    text: str
    token_ids: tuple[int, ...] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class PromptAgreement:
    """Two answers to one prompt, compared up to where they part."""

    prompt_id: str
    unit: Unit
    compared: int
    """Units compared, the first differing one included."""
    first_divergence: int | None
    """Index of the first differing unit; None when there is none. An answer that ends earlier
    differs at its end."""
    baseline_at: int | str | None
    """The baseline's unit there; None when its answer had ended, or nothing differs."""
    other_at: int | str | None
    same_text: bool

    @property
    def equal(self) -> bool:
        """Same tokens and same text: a fault in detokenising is seen by the reader, too."""
        return self.first_divergence is None and self.same_text


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far `name` agrees with the baseline, over the prompts that both answered."""

    name: str
    prompts: tuple[PromptAgreement, ...]
    missing: tuple[str, ...]
    """Prompts that only one of the two answered."""

    @property
    def diverged(self) -> tuple[PromptAgreement, ...]:
        return tuple(prompt for prompt in self.prompts if not prompt.equal)

    @property
    def exact_match_rate(self) -> float | None:
        """Formula: prompts with equal answers / prompts both answered. Undefined: none were."""
        if not self.prompts:
            return None
        return 1 - len(self.diverged) / len(self.prompts)

    def exact_match_interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Clopper-Pearson interval of the exact match rate. Undefined: no prompt in common."""
        if not self.prompts:
            return None
        equal = len(self.prompts) - len(self.diverged)
        return proportion_interval(equal, len(self.prompts), confidence)

    @property
    def divergences_per_1k_tokens(self) -> float | None:
        """Rate of parting while still together: comparable between lengths of output.

        Formula: 1000 · prompts that diverged / tokens compared, each prompt up to its divergence
        Undefined: no tokens compared, or the answers came without token ids.
        """
        compared = sum(prompt.compared for prompt in self.prompts)
        if not compared or any(prompt.unit != "token" for prompt in self.prompts):
            return None
        return 1000 * len(self.diverged) / compared


def answer_of(record: RequestRecord) -> Answer | None:
    """The answer of a completed request; later turns get a prompt id of their own.

    Undefined: None for a request that did not complete.
    """
    if not record.completed:
        return None
    turn = f" turn {record.turn + 1}" if record.turn else ""
    return Answer(record.prompt_id + turn, record.text, record.token_ids, record.finish_reason)


def agreement(baseline: Iterable[Answer], other: Iterable[Answer], *, name: str) -> Agreement:
    """Compares the answers prompt by prompt, in the baseline's order.

    Raises: ValueError when one side answers a prompt twice.
    """
    mine, theirs = _by_prompt(baseline, "baseline"), _by_prompt(other, name)
    return Agreement(
        name=name,
        prompts=tuple(compare(mine[p], theirs[p]) for p in mine if p in theirs),
        missing=tuple([p for p in mine if p not in theirs] + [p for p in theirs if p not in mine]),
    )


def compare(baseline: Answer, other: Answer) -> PromptAgreement:
    """Token ids where both sides have them; the characters of the text otherwise."""
    if baseline.token_ids is not None and other.token_ids is not None:
        return _compare(baseline, other, "token", baseline.token_ids, other.token_ids)
    return _compare(baseline, other, "character", baseline.text, other.text)


def _compare(
    baseline: Answer,
    other: Answer,
    unit: Unit,
    mine: Sequence[int] | str,
    theirs: Sequence[int] | str,
) -> PromptAgreement:
    at = first_divergence(mine, theirs)
    return PromptAgreement(
        prompt_id=baseline.prompt_id,
        unit=unit,
        compared=len(mine) if at is None else at + 1,
        first_divergence=at,
        baseline_at=None if at is None or at >= len(mine) else mine[at],
        other_at=None if at is None or at >= len(theirs) else theirs[at],
        same_text=baseline.text == other.text,
    )


def _by_prompt(answers: Iterable[Answer], name: str) -> dict[str, Answer]:
    found: dict[str, Answer] = {}
    for answer in answers:
        if answer.prompt_id in found:
            raise ValueError(
                f"{name}: one answer a prompt, got two for {answer.prompt_id!r}; "
                "compare repeats one set at a time"
            )
        found[answer.prompt_id] = answer
    return found
