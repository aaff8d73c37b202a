"""Requests of OpenAI's API as a suite sends them, and what their answers say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.ports import Answer, Ask

CHAT = "/v1/chat/completions"
COMPLETION = "/v1/completions"


def chat(model: str, messages: str | Sequence[Mapping[str, Any]], **fields: Any) -> Ask:
    """A chat request; a text is one user message."""
    turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    return json_ask(CHAT, {"model": model, "messages": list(turns), **fields})


def completion(model: str, prompt: str | Sequence[int], **fields: Any) -> Ask:
    return json_ask(COMPLETION, {"model": model, "prompt": prompt, **fields})


def json_ask(path: str, body: Mapping[str, Any]) -> Ask:
    return Ask(path=path, body=orjson.dumps(body))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of an answer's choices, streamed or whole."""

    text: str = ""
    finish_reason: str | None = None
    token_ids: tuple[int, ...] | None = None
    """With `return_token_ids`."""
    logprobs: Any = None
    """As the server gave them; of a stream, the chunks' joined in a list."""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    stop_reason: Any = None


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says. `error` is the server's or the connection's; None: it answered."""

    choices: tuple[Choice, ...] = ()
    usage: Mapping[str, Any] | None = None
    error: str | None = None
    body: Any = None
    """The parsed body of an answer that was not streamed."""
    done: bool = False
    """`[DONE]` came, or the body was whole."""
    prompt_token_ids: tuple[int, ...] | None = None
    """With `return_token_ids`."""

    @property
    def text(self) -> str:
        return self.choices[0].text if self.choices else ""

    @property
    def first(self) -> Choice:
        return self.choices[0] if self.choices else Choice()


def read(answer: Answer) -> Said:
    """Never raises: an answer that cannot be read has an `error` that says why."""
    if answer.error is not None:
        return Said(error=f"{answer.error}: {answer.error_text or 'no text'}")
    if answer.status is None or not 200 <= answer.status < 300:
        return Said(error=f"HTTP {answer.status}: {_message(answer.body)}")
    if (answer.content_type or "").startswith("text/event-stream"):
        return _streamed(answer)
    body = _parsed(answer.body)
    if not isinstance(body, dict):
        return Said(error=f"the body is no JSON object: {answer.body[:120]!r}")
    if body.get("error") is not None:
        return Said(error=_message(answer.body), body=body)
    choices = body.get("choices")
    if not isinstance(choices, list):
        return Said(error=f"the body has no choices: {answer.body[:120]!r}", body=body)
    read_choices = tuple(_whole(choice) for choice in choices if isinstance(choice, dict))
    return Said(
        read_choices, body.get("usage"), body=body, done=True, prompt_token_ids=_prompt_ids(body)
    )


def _prompt_ids(body: Mapping[str, Any]) -> tuple[int, ...] | None:
    """A chat tells them once, a completion with its choice; a stream in its first chunk."""
    for told in (body, *(body.get("choices") or ())[:1]):
        if isinstance(told, dict) and told.get("prompt_token_ids") is not None:
            return tuple(told["prompt_token_ids"])
    return None


def _whole(choice: Mapping[str, Any]) -> Choice:
    message = choice.get("message") or {}
    text = choice.get("text") if "text" in choice else message.get("content")
    ids = choice.get("token_ids")
    return Choice(
        text=text or "",
        finish_reason=choice.get("finish_reason"),
        token_ids=None if ids is None else tuple(ids),
        logprobs=choice.get("logprobs"),
        tool_calls=tuple(message.get("tool_calls") or ()),
        stop_reason=choice.get("stop_reason"),
    )


def _streamed(answer: Answer) -> Said:
    choices: dict[int, _Growing] = {}
    usage: Mapping[str, Any] | None = None
    prompt: tuple[int, ...] | None = None
    done = False
    for _, data in answer.events:
        if data == "[DONE]":
            done = True
            break
        chunk = _parsed(data)
        if not isinstance(chunk, dict):
            return Said(error=f"an event is no JSON object: {data[:120]!r}")
        if chunk.get("error") is not None:
            return Said(error=_message(data))
        usage = chunk.get("usage") or usage
        prompt = prompt or _prompt_ids(chunk)
        for choice in chunk.get("choices") or ():
            choices.setdefault(choice.get("index", 0), _Growing()).add(choice)
    ended = tuple(choices[index].choice() for index in sorted(choices))
    return Said(ended, usage, done=done, prompt_token_ids=prompt)


class _Growing:
    def __init__(self) -> None:
        self._texts: list[str] = []
        self._ids: list[int] | None = None
        self._logprobs: list[Any] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None
        self._stop: Any = None

    def add(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {}
        text = choice.get("text") if "text" in choice else delta.get("content")
        self._texts.append(text or "")
        if choice.get("token_ids") is not None:
            self._ids = [*(self._ids or ()), *choice["token_ids"]]
        if choice.get("logprobs") is not None:
            self._logprobs.append(choice["logprobs"])
        for call in delta.get("tool_calls") or ():
            self._call(call)
        self._finish = choice.get("finish_reason") or self._finish
        self._stop = choice.get("stop_reason") or self._stop

    def _call(self, call: Mapping[str, Any]) -> None:
        kept = self._calls.setdefault(
            call.get("index", 0), {"function": {"name": "", "arguments": ""}}
        )
        kept["id"] = call.get("id") or kept.get("id")
        for name, part in (call.get("function") or {}).items():
            kept["function"][name] = (kept["function"].get(name) or "") + (part or "")

    def choice(self) -> Choice:
        return Choice(
            text="".join(self._texts),
            finish_reason=self._finish,
            token_ids=None if self._ids is None else tuple(self._ids),
            logprobs=self._logprobs or None,
            tool_calls=tuple(self._calls[index] for index in sorted(self._calls)),
            stop_reason=self._stop,
        )


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _message(text: str) -> str:
    """The server's own words out of an error body."""
    body = _parsed(text)
    told = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(told, dict):
        told = told.get("message") or told.get("detail") or told
    return str(told if told is not None else text)[:500]
