"""A whole answer, as the suites that compare answers need it: with token ids if there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from orchestrator.plan.block import Prompt
from orchestrator.ports import Answer, Ask
from orchestrator.run.suites.openai import chat, read

ANSWER_TIMEOUT_S = 180.0
"""Of one request, waiting for its turn included: slow machines are not failed requests."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The first choice of an answer."""

    text: str
    token_ids: tuple[int, ...] | None
    """None where the server gives none."""
    prompt_token_ids: tuple[int, ...] | None
    finish_reason: str | None


def chat_ask(model: str, prompt: Prompt, fields: Mapping[str, Any]) -> Ask:
    """A prompt's first turn as a chat request; `fields` as the API names them."""
    messages = [] if prompt.system is None else [{"role": "system", "content": prompt.system}]
    messages.append({"role": "user", "content": prompt.turns[0]})
    return replace(chat(model, messages, **fields), timeout_s=ANSWER_TIMEOUT_S)


def completion_of(answer: Answer) -> Completion | None:
    """Undefined: None for anything but a whole answer."""
    said = read(answer)
    if said.error is not None or not said.choices:
        return None
    return Completion(
        text=said.text,
        token_ids=said.first.token_ids,
        prompt_token_ids=said.prompt_token_ids,
        finish_reason=said.first.finish_reason,
    )


def first_divergence(one: Sequence[int] | str, other: Sequence[int] | str) -> int | None:
    """Index of the first unit that differs; an end counts as different from any unit.

    >>> first_divergence([5, 7, 9], [5, 8, 9]), first_divergence([5, 7], [5, 7, 9])
    (1, 2)
    Undefined: None when the two are equal.
    """
    for index, (a, b) in enumerate(zip_longest(one, other)):
        if a != b:
            return index
    return None
