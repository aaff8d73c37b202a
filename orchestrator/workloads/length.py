"""How long the prompts of a set are, in the target's tokens, without inventing text.

Three ways: *select* prompts that have the length, *cut* longer ones, *join* several. What was done
is kept in the set's name and in `treatment`, since a cut article is another workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.errors import WorkloadError
from orchestrator.plan.block import Prompt
from orchestrator.workloads.cut import cut_to_tokens
from orchestrator.workloads.prompt_set import CountTokens, PromptSet, with_token_counts

SEPARATOR = "\n\n"
MIXED = "mixed"
"""Category of a prompt that was joined across categories."""


@dataclass(frozen=True, slots=True)
class InputLength:
    """Bounds on the first turn's length in tokens; `exactly` allows `tolerance` to either side."""

    min: int | None = None
    max: int | None = None
    exactly: int | None = None
    tolerance: float = 0.05
    """Of `exactly`, as a fraction."""
    by: Literal["selection", "cut", "join"] = "selection"

    def __post_init__(self) -> None:
        values = [value for value in (self.min, self.max, self.exactly) if value is not None]
        if any(value < 1 for value in values):
            raise WorkloadError(f"input_tokens: must be 1 or more, got {min(values)}")
        if self.exactly is not None and (self.min is not None or self.max is not None):
            raise WorkloadError("input_tokens: must be either exactly, or min and max; got both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise WorkloadError(
                f"input_tokens: min <= max must hold, got (min={self.min}, max={self.max})"
            )
        if not 0 <= self.tolerance < 1:
            raise WorkloadError(
                f"input_tokens.tolerance: must be in 0 ≤ tolerance < 1, got {self.tolerance}"
            )
        if self.by != "selection" and self.most is None:
            raise WorkloadError(
                f"input_tokens: {self.by} needs max or exactly, got only min={self.min}"
            )

    @property
    def least(self) -> int:
        if self.exactly is not None:
            return max(1, round(self.exactly * (1 - self.tolerance)))
        return self.min or 1

    @property
    def most(self) -> int | None:
        if self.exactly is None:
            return self.max
        return round(self.exactly * (1 + self.tolerance))

    @property
    def target(self) -> int | None:
        """What a text is cut to: never above what was asked for."""
        return self.exactly if self.exactly is not None else self.max

    @property
    def reach(self) -> int:
        """What prompts are joined up to: `max` when it stands alone, as it asks for the longest."""
        if self.exactly is None and self.min is None:
            return self.max or 1
        return self.least

    def label(self) -> str:
        """`selection(min=8,max=64)`, `cut(exactly=512±5%)`."""
        if self.exactly is not None:
            return f"{self.by}(exactly={self.exactly}±{self.tolerance:.0%})"
        bounds = [
            f"{name}={value}"
            for name, value in (("min", self.min), ("max", self.max))
            if value is not None
        ]
        return f"{self.by}({','.join(bounds)})"

    def allows(self, tokens: int) -> bool:
        return self.least <= tokens and (self.most is None or tokens <= self.most)


def control_length(prompts: PromptSet, length: InputLength, count_tokens: CountTokens) -> PromptSet:
    """The set with every first turn inside the bounds, counted.

    selection: prompts outside the bounds are left out. cut: longer ones are cut, ones that are too
    short left out. join: prompts of one category are put together in order, separated by a blank
    line, until the length is reached, then cut; what the categories have left is joined as
    `mixed`; each prompt's text is used once.
    Without bounds the set is returned counted and otherwise as it was.
    Raises: WorkloadError when no prompt is left; says which lengths there are.
    """
    counted = with_token_counts(prompts, count_tokens)
    if length.least == 1 and length.most is None:
        return counted
    if length.by == "join":
        kept = _joined(counted.prompts, length, count_tokens)
    elif length.by == "cut":
        kept = [_cut(prompt, length, count_tokens) for prompt in counted.prompts]
    else:
        kept = list(counted.prompts)
    kept = [prompt for prompt in kept if prompt.tokens is not None and length.allows(prompt.tokens)]
    if not kept:
        there = counted.tokens
        span = "" if there is None else f"; its prompts have {there.min} to {there.max} tokens"
        raise WorkloadError(
            f"{prompts.source} input_tokens: no prompt is left after {length.label()}{span}; "
            "use other bounds, by: cut or by: join, or another set"
        )
    label = length.label()
    left_out = f"{label}: {len(kept)} prompts out of {len(prompts)}"
    return PromptSet.of(
        f"{prompts.name}+{label}",
        prompts.source,
        kept,
        treatment=f"{prompts.treatment} {label}".strip(),
        notes=(*prompts.notes, left_out),
    )


def _cut(prompt: Prompt, length: InputLength, count_tokens: CountTokens) -> Prompt:
    target = length.target
    if target is None or prompt.tokens is None or length.allows(prompt.tokens):
        return prompt
    if prompt.tokens < length.least:
        return prompt
    return cut_prompt(prompt, target, count_tokens)


def cut_prompt(prompt: Prompt, tokens: int, count_tokens: CountTokens) -> Prompt:
    """The prompt with its first turn cut; the recorded answers go, they answered the whole."""
    text, count = cut_to_tokens(prompt.turns[0], tokens, count_tokens, length=prompt.tokens)
    if text == prompt.turns[0]:
        return replace(prompt, tokens=count)
    return replace(prompt, turns=(text, *prompt.turns[1:]), reference=None, tokens=count)


def _joined(
    prompts: Sequence[Prompt], length: InputLength, count_tokens: CountTokens
) -> list[Prompt]:
    """Groups of successive prompts of one category, then of what the categories had left."""
    by_category: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        by_category.setdefault(prompt.category, []).append(prompt)
    made: list[Prompt] = []
    over: list[Prompt] = []
    for members in by_category.values():
        joined, left = _grouped(members, length, count_tokens)
        made += joined
        over += left
    across, _ = _grouped(over, length, count_tokens)
    return made + across


def _grouped(
    prompts: Sequence[Prompt], length: InputLength, count_tokens: CountTokens
) -> tuple[list[Prompt], list[Prompt]]:
    """Prompts joined in order, and those at the end that did not reach the length."""
    made: list[Prompt] = []
    group: list[Prompt] = []
    for prompt in prompts:
        group.append(prompt)
        # Tokens of the parts come close to those of the whole, and are known already.
        if sum(part.tokens or 0 for part in group) < length.reach:
            continue
        joined = join_prompts(group, count_tokens)
        if joined.tokens is not None and joined.tokens >= length.reach:
            made.append(_cut(joined, length, count_tokens))
            group = []
    return made, group


def join_prompts(group: Sequence[Prompt], count_tokens: CountTokens) -> Prompt:
    """One prompt of the group's first turns, a blank line between them; named `first+n`."""
    first = group[0]
    if len(group) == 1:
        return first
    text = SEPARATOR.join(prompt.turns[0] for prompt in group)
    categories = {prompt.category for prompt in group}
    systems = {prompt.system for prompt in group}
    return Prompt(
        id=f"{first.id}+{len(group) - 1}",
        category=first.category if len(categories) == 1 else MIXED,
        turns=(text,),
        system=first.system if len(systems) == 1 else None,
        tokens=int(count_tokens([text])[0]),
    )
