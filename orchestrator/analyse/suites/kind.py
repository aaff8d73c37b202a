"""What became of one request of a suite, and whether an answer is one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from orchestrator.ports import Answer, Ask
from orchestrator.run.suites.openai import Said, read


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
LEFT = "the client left, as planned"


def kind_of(ask: Ask, answer: Answer) -> tuple[Kind, str]:
    """The kind and, in one line, why."""
    if answer.abandoned:
        return Kind.ANSWERED, LEFT
    said = read(answer)
    why = normalised(said.error or "")
    if answer.status is None or answer.error is not None:
        return Kind.BROKEN, why
    if 400 <= answer.status < 500 or answer.status == TOO_BUSY:
        return Kind.REFUSED, why
    if answer.status >= 500:
        return Kind.SERVER_ERROR, why
    fault = fault_of(ask, said)
    return (Kind.ANSWERED, str(answer.status)) if fault is None else (Kind.INVALID, fault)


def fault_of(ask: Ask, said: Said) -> str | None:
    """Why a 2xx answer to a completion is none; None when it is sound.

    Sound: it can be read, a stream has its end mark, there are choices and each has ended for a
    reason, and there are no more tokens than were allowed.
    """
    if said.error is not None:
        return normalised(said.error)
    if not said.done:
        return "a stream without its end mark [DONE]"
    if not said.choices:
        return "no choices"
    ended = [choice.finish_reason for choice in said.choices if choice.finish_reason is not None]
    if len(ended) < len(said.choices):
        return f"{len(said.choices) - len(ended)} of {len(said.choices)} choices never ended"
    for reason in ended:
        if reason in ("error", "abort"):
            return f"finish reason {reason}"
    allowed, used = _body(ask).get("max_tokens"), (said.usage or {}).get("completion_tokens")
    if isinstance(allowed, int) and isinstance(used, int) and allowed > 0:
        most = allowed * len(said.choices)
        if used > most:
            return f"{used} tokens where {most} were allowed"
    return None


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


def _body(ask: Ask) -> Mapping[str, Any]:
    try:
        said = json.loads(ask.body)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return {}
    return said if isinstance(said, Mapping) else {}
