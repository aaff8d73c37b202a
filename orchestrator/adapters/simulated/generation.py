"""What a simulated server sends of an answer as its tokens come."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from orchestrator.adapters.simulated import openai_payloads as openai
from orchestrator.adapters.simulated.continuation import Continuation
from orchestrator.adapters.simulated.defects import Defect
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.request_settings import RequestSettings
from orchestrator.adapters.simulated.sampler import Chosen
from orchestrator.adapters.simulated.toy_language import UNLIKELY, token_text

_GARBAGE = "�!"
_CREATED = 1_700_000_000


@dataclass(eq=False)
class Generation:
    """A request that the engine is to run (`job`), and its answer in OpenAI's words.

    All choices advance together: after i tokens of the job every choice has min(i, its length).
    """

    job: Job
    asked: openai.Asked
    settings: RequestSettings
    choices: Sequence[Continuation]
    wrong: Set[Defect]
    garbage: bool = False

    def chunks(self, first: int, end: int) -> list[dict[str, Any]]:
        """The payloads of the events for tokens `first` to `end` − 1 of the job."""
        found = []
        for index, choice in enumerate(self.choices):
            if first >= len(choice.tokens):
                continue
            payload = {**self._head(stream=True), "choices": [self._part(index, first, end)]}
            if self.asked.continuous_usage:
                payload["usage"] = openai.usage(self.job.prompt_tokens, self._told(end))
            found.append(payload)
        return found

    def closing(self) -> list[dict[str, Any]]:
        """What follows the last token: the error, or the usage when it was asked for."""
        if self.job.error is not None:
            return [openai.error_body(self.job.error_text or "failed", 500)]
        if not self.asked.include_usage:
            return []
        usage = openai.usage(self.job.prompt_tokens, self._told(self.job.generated))
        return [{**self._head(stream=True), "choices": [], "usage": usage}]

    def whole(self) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        generated = self.job.generated
        choices = []
        for index, choice in enumerate(self.choices):
            text = self._echoed + self._text(choice, 0, generated)
            made = openai.whole_choice(self.asked.kind, text, choice.finish_reason)
            self._label(made, index, 0, generated)
            if choice.call is not None:
                made["message"] |= {"content": None, "tool_calls": [_call(choice, text)]}
            choices.append(made)
        body = {
            **self._head(stream=False),
            "choices": choices,
            "usage": openai.usage(self.job.prompt_tokens, self._told(generated)),
        }
        if self.settings.prompt_logprobs is not None:
            of_prompt = self._prompt_logprobs()
            if self.asked.kind == "chat":
                body["prompt_logprobs"] = of_prompt
            for made in choices if self.asked.kind == "completion" else ():
                made["prompt_logprobs"] = of_prompt
        return body

    def _head(self, *, stream: bool) -> dict[str, Any]:
        return {
            "id": self.job.name,
            "object": openai.OBJECTS[self.asked.kind, stream],
            "created": _CREATED,
            "model": self.asked.model,
        }

    def _told(self, end: int) -> int:
        return sum(min(end, len(choice.tokens)) for choice in self.choices)

    @property
    def _echoed(self) -> str:
        return self.asked.text if self.settings.echo and self.asked.kind == "completion" else ""

    def _text(self, choice: Continuation, first: int, end: int) -> str:
        if self.garbage:
            return _GARBAGE * (min(end, len(choice.tokens)) - first)
        return choice.text(first, end)

    def _part(self, index: int, first: int, end: int) -> dict[str, Any]:
        choice = self.choices[index]
        last = end >= len(choice.tokens)
        text = self._text(choice, first, end)
        if last and first > 0 and Defect.STREAM_DROPS_TEXT in self.wrong:
            text = ""
        text = (self._echoed if first == 0 else "") + text
        finish = choice.finish_reason if last else None
        part = openai.stream_choice(self.asked.kind, text, finish, first=first == 0)
        self._label(part, index, first, end)
        if choice.call is not None:
            call = {"index": 0, **_call(choice, text)}
            if first > 0:  # a stream names the function once
                call = {"index": 0, "function": {"arguments": text}}
            part["delta"] |= {"content": None, "tool_calls": [call]}
        return part

    def _label(self, made: dict[str, Any], index: int, first: int, end: int) -> None:
        """The choice's number, and what was asked to be told of its tokens."""
        choice = self.choices[index]
        tokens = choice.tokens[first:end]
        made["index"] = index
        made["stop_reason"] = choice.stop_reason if end >= len(choice.tokens) else None
        if self.asked.return_token_ids:
            made["token_ids"] = [0 if self.garbage else chosen.token for chosen in tokens]
        if self.settings.logprobs is not None:
            if Defect.DROPS_LOGPROBS in self.wrong:
                tokens = tuple(c for i, c in enumerate(tokens, first) if i % 3 != 2)
            made["logprobs"] = _logprobs(tokens, self.settings.logprobs, self.asked.kind)

    def _prompt_logprobs(self) -> list[dict[str, Any] | None]:
        count = self.job.prompt_tokens
        if Defect.DROPS_PROMPT_LOGPROBS in self.wrong:
            count = max(1, count - 2)
        one = {"0": {"logprob": UNLIKELY, "rank": 1, "decoded_token": token_text(0)}}
        return [None, *(dict(one) for _ in range(count - 1))]


def _call(choice: Continuation, arguments: str) -> dict[str, Any]:
    return {
        "id": "call-simulated",
        "type": "function",
        "function": {"name": choice.call, "arguments": arguments},
    }


def _logprobs(tokens: Sequence[Chosen], most: int, kind: openai.Kind) -> dict[str, Any]:
    if kind == "completion":
        return {
            "tokens": [token_text(c.token) for c in tokens],
            "token_logprobs": [c.logprob for c in tokens],
            "top_logprobs": [{token_text(t): p for t, p in c.top[:most]} for c in tokens],
        }
    return {
        "content": [
            {
                "token": token_text(c.token),
                "logprob": c.logprob,
                "top_logprobs": [{"token": token_text(t), "logprob": p} for t, p in c.top[:most]],
            }
            for c in tokens
        ]
    }
