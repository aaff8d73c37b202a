"""What a stream of OpenAI-compatible events says: text, tokens and their times. Pure.

Tokens are attributed to chunks from the server's own `usage`, never by tokenising again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from orchestrator.adapters.http.sse import Event
from orchestrator.records import RequestError

TokensFrom = Literal["usage_continuous", "token_ids", "usage_final", "none"]
ERROR_TEXT_LIMIT = 2000
_TEXT_FIELDS = ("reasoning_content", "reasoning", "content", "refusal")


@dataclass(frozen=True, slots=True)
class Answer:
    """One streamed answer. Times are on the clock of the events.

    `chunk_tokens` is None unless the server attributes tokens to chunks and the attribution adds
    up to its final count. `done` means `[DONE]` or a finish reason came.
    """

    chunk_s: tuple[float, ...] = ()
    chunk_tokens: tuple[int, ...] | None = None
    text: str = ""
    token_ids: tuple[int, ...] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str | None = None
    tokens_from: TokensFrom = "none"
    done: bool = False
    error: RequestError | None = None
    error_text: str | None = None


def read_answer(events: Sequence[Event]) -> Answer:
    """Reads events up to `[DONE]`, an error event, or the end.

    A chunk carries output when its `usage` grew, or it has text, tool-call arguments or token ids;
    the opening chunk of a chat (a role and no text) does not, nor does the closing `usage` chunk.
    """
    reading = _Reading()
    for event in events:
        if event.data == b"[DONE]":
            reading.done = True
            break
        try:
            chunk = orjson.loads(event.data)
        except orjson.JSONDecodeError as fault:
            reading.fail(RequestError.PROTOCOL, f"event is not JSON ({fault}): {event.data!r}")
            break
        if not isinstance(chunk, dict):
            reading.fail(RequestError.PROTOCOL, f"event is not a JSON object: {event.data!r}")
            break
        if (
            event.type == "error"
            or chunk.get("error") is not None
            or chunk.get("object") == "error"
        ):
            reading.fail(RequestError.STREAM_ERROR, error_message(chunk))
            break
        reading.chunk(event.at_s, chunk)
    return reading.answer()


def error_message(body: Any) -> str:
    """The server's own words out of an error body, cut to a readable length."""
    told = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        kind = told.get("type") or told.get("code")
        told = f"{kind}: {told['message']}" if kind else told["message"]
    text = told if isinstance(told, str) else orjson.dumps(told).decode()
    return text[:ERROR_TEXT_LIMIT]


class _Reading:
    def __init__(self) -> None:
        self.done = False
        self.error: RequestError | None = None
        self.error_text: str | None = None
        self.at: list[float] = []
        self.by_usage: list[int] | None = []
        self.by_ids: list[int] | None = []
        self.ids: list[int] = []
        self.texts: list[str] = []
        self.finish_reason: str | None = None
        self.counted = 0
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None

    def fail(self, error: RequestError, text: str) -> None:
        self.error, self.error_text = error, text[:ERROR_TEXT_LIMIT]

    def chunk(self, at_s: float, chunk: dict[str, Any]) -> None:
        usage = chunk.get("usage")
        grew: int | None = None
        if usage:
            self.input_tokens = usage.get("prompt_tokens", self.input_tokens)
            total = usage.get("completion_tokens")
            if total is not None:
                grew = total - self.counted
                self.counted = self.output_tokens = total
        choices = chunk.get("choices")
        if not choices:
            # The closing usage chunk. Tokens it adds were in chunks that did not say so.
            if grew:
                self.by_usage = None
            return
        choice = choices[0]
        text, other = _output_of(choice)
        ids = choice.get("token_ids")
        if choice.get("finish_reason") is not None:
            self.finish_reason = choice["finish_reason"]
        if not (text or other or ids or grew):
            return
        self.at.append(at_s)
        if text:
            self.texts.append(text)
        if self.by_usage is not None:
            # A chunk with output and no usage of its own ends the attribution; usage that falls
            # back would be a server's fault and ends it as well.
            if grew is None or grew < 0:
                self.by_usage = None
            else:
                self.by_usage.append(grew)
        if self.by_ids is not None:
            if ids is None:
                self.by_ids = None
            else:
                self.by_ids.append(len(ids))
                self.ids.extend(ids)

    def answer(self) -> Answer:
        tokens, source = self._attribution()
        has_ids = self.by_ids is not None and bool(self.at)
        return Answer(
            chunk_s=tuple(self.at),
            chunk_tokens=tokens,
            text="".join(self.texts),
            token_ids=tuple(self.ids) if has_ids else None,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens
            if self.output_tokens is not None
            else (len(self.ids) if has_ids else None),
            finish_reason=self.finish_reason,
            tokens_from=source,
            done=self.done or self.finish_reason is not None,
            error=self.error,
            error_text=self.error_text,
        )

    def _attribution(self) -> tuple[tuple[int, ...] | None, TokensFrom]:
        total = self.output_tokens
        if self.by_usage and sum(self.by_usage) == total:
            return tuple(self.by_usage), "usage_continuous"
        if self.by_ids and (total is None or sum(self.by_ids) == total):
            return tuple(self.by_ids), "token_ids"
        return None, "none" if total is None else "usage_final"


def _output_of(choice: dict[str, Any]) -> tuple[str, bool]:
    """The text a choice adds, and whether it adds output that is not text (a tool call)."""
    delta = choice.get("delta")
    if delta is None:
        return choice.get("text") or "", False
    content = delta.get("content")
    if isinstance(content, str) and len(delta) == 1:
        return content, False
    found = [delta[field] for field in _TEXT_FIELDS if isinstance(delta.get(field), str)]
    return "".join(found), bool(delta.get("tool_calls"))
