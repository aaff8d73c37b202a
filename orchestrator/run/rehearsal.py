"""What the target says to a block's prompts, recorded before a supposed draft proposes it.

Asked of the baseline at temperature 0, in tokens, under a cache salt of its own: the block that is
measured afterwards finds nothing of it in the prefix cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import ClientFailed
from orchestrator.plan.block import BlockPlan, PlannedRequest
from orchestrator.ports import Answer, Ask, Asker, Endpoint

CONTINUATIONS_PATH = "/orchestrator/continuations"
_SALT = "rehearsal"
_PATHS = {"chat": "/v1/chat/completions", "completion": "/v1/completions"}
Recorded = list[list[list[int]]]
"""[[prompt, answer], …] as token ids."""


@dataclass(frozen=True)
class Rehearsal:
    """Records from one arm, teaches the other."""

    asker: Asker

    def record(self, endpoint: Endpoint, block: BlockPlan) -> Recorded:
        """Raises: ClientFailed when a prompt gets no answer in tokens."""
        asks = [
            Ask(_PATHS[block.endpoint], json.dumps(body).encode(), timeout_s=request_s)
            for body, request_s in _bodies(endpoint, block)
        ]
        in_flight = block.load.concurrency or min(8, len(asks))
        answers = self.asker.ask(endpoint, asks, in_flight=max(1, in_flight))
        return [_tokens(endpoint, answer) for answer in answers]

    def teach(self, endpoint: Endpoint, recorded: Recorded) -> None:
        """Raises: ClientFailed when the engine does not take them."""
        body = json.dumps(recorded).encode()
        answer = self.asker.ask(endpoint, [Ask(CONTINUATIONS_PATH, body)])[0]
        if answer.status != 200:
            raise ClientFailed(
                f"{endpoint.name}{CONTINUATIONS_PATH}: must answer 200 to what the target said, "
                f"got {_said(answer)}"
            )


def _bodies(endpoint: Endpoint, block: BlockPlan) -> Iterator[tuple[dict[str, Any], float]]:
    for planned in block.requests:
        for messages in _histories(planned, block.history):
            body: dict[str, Any] = {
                "model": endpoint.model,
                "temperature": 0.0,
                "max_tokens": planned.max_tokens,
                "return_token_ids": True,
                "cache_salt": _SALT,
            }
            if block.fixed_length:
                body["ignore_eos"] = True
            if block.endpoint == "chat":
                body["messages"] = messages
            else:
                body["prompt"] = "\n\n".join(message["content"] for message in messages)
            yield body, block.timeouts.total_s


def _histories(planned: PlannedRequest, history: str) -> Iterator[list[dict[str, str]]]:
    """What each turn of the conversation sends."""
    prompt = planned.prompt
    said = [] if prompt.system is None else [{"role": "system", "content": prompt.system}]
    turns: Sequence[str] = prompt.turns[:1] if history == "first_turn" else prompt.turns
    for index, turn in enumerate(turns):
        said = [*said, {"role": "user", "content": turn}]
        yield said
        if index + 1 < len(turns):
            said = [*said, {"role": "assistant", "content": (prompt.reference or ())[index]}]


def _tokens(endpoint: Endpoint, answer: Answer) -> list[list[int]]:
    try:
        content = json.loads(answer.body)
        choice = content["choices"][0]
        prompt = content.get("prompt_token_ids") or choice["prompt_token_ids"]
        return [list(prompt), list(choice["token_ids"])]
    except (ValueError, KeyError, IndexError, TypeError):
        raise ClientFailed(
            f"{endpoint.name}: must answer in tokens (return_token_ids), got {_said(answer)}"
        ) from None


def _said(answer: Answer) -> str:
    if answer.status is None:
        return f"{answer.error}: {answer.error_text or 'no text'}"
    return f"status {answer.status}: {answer.body[:200]}"
