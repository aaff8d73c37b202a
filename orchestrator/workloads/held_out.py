"""Which prompts a draft learns from, and which it is judged by."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from orchestrator.plan.block import Prompt
from orchestrator.workloads.prompt_set import PromptSet


def some_of(prompts: PromptSet, count: int, *, seed: int) -> tuple[Prompt, ...]:
    """At most `count` prompts at random, in the set's order."""
    if count >= len(prompts):
        return prompts.prompts
    chosen = set(random.Random(seed).sample(range(len(prompts)), count))
    return tuple(prompt for index, prompt in enumerate(prompts.prompts) if index in chosen)


def hold_out(
    prompts: Sequence[Prompt], share: float, *, seed: int
) -> tuple[list[Prompt], list[Prompt]]:
    """(learned from, held out): of every category with two prompts or more that share, at least
    one. A category with a single prompt is learned from.
    """
    by_category: dict[str, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        by_category[prompt.category].append(prompt)
    learned, held = [], []
    for category in sorted(by_category):
        its = list(by_category[category])
        random.Random(f"{seed} {category}").shuffle(its)
        count = max(1, round(share * len(its))) if len(its) > 1 else 0
        held += its[:count]
        learned += its[count:]
    return learned, held
