"""What became of one request of a suite, and whether an answer is one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from orchestrator.ports import Answer, Ask


class Kind(IntEnum):
    """Ordered from best to worst for a request that should be answered."""

    ANSWERED = 0
    REFUSED = 1
    """With a status of 4xx, or 503: a queue that is full says so."""
    SERVER_ERROR = 2
    INVALID = 3
    """Status 2xx, but what came is not an answer."""
    BROKEN = 4
    """No answer: the connection was closed, or nothing came in time."""


TOO_BUSY = 503


def kind_of(ask: Ask, answer: Answer) -> tuple[Kind, str]:
    """The kind and, in one line, why."""
    if answer.abandoned:
        return Kind.ANSWERED, "the client left, as planned"
    if answer.status is None:
        what = answer.error.value if answer.error is not None else "nothing came"
        return Kind.BROKEN, f"{what}: {answer.error_text or 'no answer'}"
    if 400 <= answer.status < 500 or answer.status == TOO_BUSY:
        return Kind.REFUSED, f"{answer.status}: {normalised(error_message(answer.body))}"
    if answer.status >= 500:
        return Kind.SERVER_ERROR, f"{answer.status}: {normalised(error_message(answer.body))}"
    if answer.error is not None:
        return Kind.BROKEN, f"{answer.error.value}: {answer.error_text or ''}"
    wrong = fault_of(ask, answer)
    return (Kind.ANSWERED, str(answer.status)) if wrong is None else (Kind.INVALID, wrong)


def fault_of(ask: Ask, answer: Answer) -> str | None:
    """Why a 2xx answer to a completion is none; None when it is sound.

    Sound: JSON (every event of a stream, which ends with `[DONE]`), choices that are numbered and
    each have ended for a reason, and no more tokens than were allowed.
    """
    wants = _body(ask)
    streamed = bool(answer.content_type and answer.content_type.startswith("text/event-stream"))
    try:
        if streamed:
            payloads = [json.loads(data) for _, data in answer.events if data != "[DONE]"]
        else:
            payloads = [json.loads(answer.body)]
    except ValueError as error:
        return f"not JSON ({error})"
    if not all(isinstance(payload, Mapping) for payload in payloads):
        return "not a JSON object"
    for payload in payloads:
        if "error" in payload:
            return f"an error inside an answer of status {answer.status}: {str(payload)[:200]}"
    if streamed and (not answer.events or answer.events[-1][1] != "[DONE]"):
        return "a stream without its end mark [DONE]"
    return _fault_of_choices(payloads, wants)


def error_message(body: str) -> str:
    """The message of an OpenAI-like error body, or the body itself."""
    try:
        said = json.loads(body)
    except ValueError:
        return body
    if isinstance(said, Mapping):
        inner = said.get("error", said)
        if isinstance(inner, Mapping):
            return str(inner.get("message", inner))
        return str(inner)
    return body


def text_of(answer: Answer) -> str:
    """All choices' text in order; empty where nothing is understood."""
    try:
        payloads = (
            [json.loads(data) for _, data in answer.events if data != "[DONE]"]
            if answer.events
            else [json.loads(answer.body)]
        )
        return "".join(
            _text(choice) for payload in payloads for choice in payload.get("choices") or ()
        )
    except (ValueError, AttributeError, TypeError):
        return ""


_VARYING = (
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.I), "UUID"),
    (re.compile(r"\b(?:cmpl|chatcmpl|req|request)[-_][\w-]{6,}\b"), "ID"),
    (re.compile(r"0x[0-9a-f]{6,}", re.I), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{16,}\b", re.I), "HASH"),
    (re.compile(r"https?://[^\s'\"]+"), "URL"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*Z?"), "TIME"),
    (re.compile(r"\s+"), " "),
)


def normalised(text: str, *, longest: int = 300) -> str:
    """An error text without what differs from call to call (ids, addresses, times)."""
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text.strip()[:longest]


def _fault_of_choices(payloads: list[Any], wants: Mapping[str, Any]) -> str | None:
    ended: dict[int, str] = {}
    seen: set[int] = set()
    completion_tokens = None
    for payload in payloads:
        choices = payload.get("choices")
        if not isinstance(choices, list):
            return "no choices"
        for choice in choices:
            if not isinstance(choice, Mapping) or not isinstance(choice.get("index"), int):
                return "a choice without its number"
            seen.add(choice["index"])
            if choice.get("finish_reason") is not None:
                ended[choice["index"]] = str(choice["finish_reason"])
        usage = payload.get("usage")
        if isinstance(usage, Mapping):
            completion_tokens = usage.get("completion_tokens")
    if not seen:
        return "no choices"
    if seen - ended.keys():
        return f"{len(seen - ended.keys())} of {len(seen)} choices never ended"
    if failed := sorted({reason for reason in ended.values() if reason in ("error", "abort")}):
        return f"finish reason {failed[0]}"
    allowed = wants.get("max_tokens")
    if isinstance(allowed, int) and isinstance(completion_tokens, int) and allowed > 0:
        most = allowed * max(1, len(seen))
        if completion_tokens > most:
            return f"{completion_tokens} tokens where {most} were allowed"
    return None


def _text(choice: Mapping[str, Any]) -> str:
    inner = choice.get("delta") or choice.get("message") or {}
    return str(choice.get("text") or inner.get("content") or "")


def _body(ask: Ask) -> Mapping[str, Any]:
    try:
        said = json.loads(ask.body)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return {}
    return said if isinstance(said, Mapping) else {}
