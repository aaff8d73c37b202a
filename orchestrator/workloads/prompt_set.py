"""A set of prompts with a name, a hash of its content, and its lengths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.errors import WorkloadError
from orchestrator.plan.block import Prompt
from orchestrator.plan.identity import content_hash

CountTokens = Callable[[Sequence[str]], Sequence[int]]
"""Lengths of texts in the target's tokens, without special tokens or chat template."""


@dataclass(frozen=True, slots=True)
class LengthStatistics:
    """Lengths of the first turns, in one unit."""

    count: int
    min: int
    median: float
    mean: float
    p95: float
    max: int


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts in the order of their ids (numbers by value), so that a file's order is no content.

    Build one with `PromptSet.of`, which sorts, checks and hashes.
    """

    name: str
    source: str
    hash: str
    prompts: tuple[Prompt, ...]
    treatment: str = ""
    """What was done to the prompts' length since they were read; empty = nothing."""
    notes: tuple[str, ...] = ()
    """What a reader must know: records skipped, prompts left over, text used twice."""

    @classmethod
    def of(
        cls,
        name: str,
        source: str,
        prompts: Iterable[Prompt],
        *,
        treatment: str = "",
        notes: Sequence[str] = (),
    ) -> PromptSet:
        """The set, in canonical order, with its hash.

        Raises: WorkloadError when there is no prompt, or two with one id.
        """
        ordered = tuple(sorted(prompts, key=lambda prompt: _natural(prompt.id)))
        if not ordered:
            raise WorkloadError(f"{source}: must hold at least one prompt")
        repeated = [
            id for id, count in Counter(prompt.id for prompt in ordered).items() if count > 1
        ]
        if repeated:
            raise WorkloadError(f"{source}: ids must be unique, got {repeated[:5]} more than once")
        return cls(name, source, prompts_hash(ordered), ordered, treatment, tuple(notes))

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def categories(self) -> dict[str, int]:
        """Prompts per category, by name."""
        return dict(sorted(Counter(prompt.category for prompt in self.prompts).items()))

    @property
    def characters(self) -> LengthStatistics:
        return length_statistics([len(prompt.turns[0]) for prompt in self.prompts])

    @property
    def words(self) -> LengthStatistics:
        """Between white space: too few for scripts that write none, such as Chinese."""
        return length_statistics([len(prompt.turns[0].split()) for prompt in self.prompts])

    @property
    def tokens(self) -> LengthStatistics | None:
        """Undefined: None unless every prompt was counted (`with_token_counts`)."""
        counts = [prompt.tokens for prompt in self.prompts if prompt.tokens is not None]
        return length_statistics(counts) if len(counts) == len(self.prompts) else None

    def describe(self) -> dict[str, Any]:
        """Plain JSON for records, tracking and reports."""
        tokens = self.tokens
        return {
            "name": self.name,
            "source": self.source,
            "hash": self.hash,
            "prompts": len(self.prompts),
            "multi_turn_prompts": sum(len(prompt.turns) > 1 for prompt in self.prompts),
            "categories": self.categories,
            "treatment": self.treatment,
            "notes": list(self.notes),
            "characters": _as_dict(self.characters),
            "words": _as_dict(self.words),
            "tokens": None if tokens is None else _as_dict(tokens),
        }


def prompts_hash(prompts: Iterable[Prompt]) -> str:
    """Names the content: ids, categories, texts. Not the file's format, order or token counts."""
    return content_hash(
        [
            [
                prompt.id,
                prompt.category,
                list(prompt.turns),
                prompt.system,
                None if prompt.reference is None else list(prompt.reference),
            ]
            for prompt in sorted(prompts, key=lambda prompt: _natural(prompt.id))
        ]
    )


def with_token_counts(prompts: PromptSet, count_tokens: CountTokens) -> PromptSet:
    """The same set, each prompt with the token count of its first turn. The hash stays."""
    counts = count_tokens([prompt.turns[0] for prompt in prompts.prompts])
    if len(counts) != len(prompts.prompts):
        raise WorkloadError(
            f"{prompts.source}: the token counter must answer one count per text, "
            f"got {len(counts)} for {len(prompts.prompts)}"
        )
    counted = tuple(
        replace(prompt, tokens=int(count))
        for prompt, count in zip(prompts.prompts, counts, strict=True)
    )
    return replace(prompts, prompts=counted)


def of_categories(prompts: PromptSet, categories: Sequence[str]) -> PromptSet:
    """Only the prompts of these categories; all of them when none is named.

    Raises: WorkloadError for a category the set does not have.
    """
    if not categories:
        return prompts
    unknown = sorted(set(categories) - set(prompts.categories))
    if unknown:
        known = ", ".join(prompts.categories)
        raise WorkloadError(
            f"{prompts.source} categories: must be among the set's, got {unknown}; it has {known}"
        )
    wanted = sorted(set(categories))
    return PromptSet.of(
        f"{prompts.name}[{','.join(wanted)}]",
        prompts.source,
        [prompt for prompt in prompts.prompts if prompt.category in wanted],
        treatment=prompts.treatment,
        notes=prompts.notes,
    )


def length_statistics(lengths: Sequence[int]) -> LengthStatistics:
    """Formula: median and p95 by linear interpolation between order statistics."""
    ordered = sorted(lengths)
    return LengthStatistics(
        count=len(ordered),
        min=ordered[0],
        median=_quantile(ordered, 0.5),
        mean=sum(ordered) / len(ordered),
        p95=_quantile(ordered, 0.95),
        max=ordered[-1],
    )


def _quantile(ordered: Sequence[int], q: float) -> float:
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def _natural(text: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Sorts `p-2` before `p-10`; the text itself breaks the tie between `p-2` and `p-02`."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    key = tuple((0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts)
    return key, text


def _as_dict(statistics: LengthStatistics) -> dict[str, float]:
    return {
        "min": statistics.min,
        "median": statistics.median,
        "mean": round(statistics.mean, 3),
        "p95": round(statistics.p95, 3),
        "max": statistics.max,
    }
