"""Which of the bundled prompts a suite asks. Every use has prompts of its own.

Engines remember prompts (prefix cache, suffix tree): what one use has asked would be answered from
memory in the next, and the second answer would test less than it seems to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from orchestrator.plan.block import Prompt
from orchestrator.plan.prompts import shuffled
from orchestrator.workloads.load import load_prompts

SETS = ("chat", "code", "reasoning", "rewrite", "translation")
SUITES: tuple[str, ...] = ("losslessness", "quality")
"""The suites that share the sets out among them."""
CHARACTERS_PER_TOKEN = 2.0
"""A prompt fits if it has at most so many characters for each token left to it; English has about
four. Chinese has fewer: such prompts count each character of theirs double."""
CONTEXT_TOKENS = 2048
"""Assumed where the engine was started without `max_model_len`."""
LONGEST_TOKENS = 600
"""Longer prompts add prefill and no more answers."""


class PromptDeck:
    """Deals each prompt once, in an order that depends on the seed alone."""

    def __init__(
        self, suite: Literal["losslessness", "quality"], seed: int, *, max_tokens: int
    ) -> None:
        limit = max_tokens * CHARACTERS_PER_TOKEN
        # Shared out before the long ones are dropped: a suite's share must not depend on the limit.
        share = shuffled(_bundled(), seed)[SUITES.index(suite) :: len(SUITES)]
        self._left = [prompt for prompt in share if _weight(prompt.turns[0]) <= limit]

    def deal(self, count: int) -> tuple[Prompt, ...]:
        """The next prompts; fewer where the sets are used up."""
        dealt, self._left = tuple(self._left[:count]), self._left[count:]
        return dealt


def prompt_room(deployment: Mapping[str, Any], output_tokens: int) -> int:
    """Tokens that a prompt may have, so that it and its answer fit the engine's context."""
    context = deployment.get("engine", {}).get("max_model_len")
    tokens = context if isinstance(context, int) else CONTEXT_TOKENS
    template_tokens = 40  # role marks, and the system prompt that some templates add
    return max(1, min(LONGEST_TOKENS, tokens - output_tokens - template_tokens))


def _weight(text: str) -> int:
    return len(text) + sum(ord(character) > 0x2E7F for character in text)


@cache
def _bundled() -> tuple[Prompt, ...]:
    """Ids name the set, too, so none appears twice."""
    return tuple(
        prompt for name in SETS for prompt in load_prompts(f"bundled:{name}", base=Path()).prompts
    )
