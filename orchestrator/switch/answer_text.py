"""The text of an answer, out of its bytes: what shadowed answers are compared by. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson

NGRAM = 4


def answer_text(body: bytes, *, streamed: bool) -> str | None:
    """All choices' texts and tool calls, in order of their index.

    Undefined: None when it is no OpenAI answer.
    """
    texts: dict[int, list[str]] = {}
    for said in _payloads(body) if streamed else [_loaded(body)]:
        if said is None or not isinstance(said.get("choices"), list):
            return None
        for choice in said["choices"]:
            parts = texts.setdefault(int(choice.get("index", 0)), [])
            parts.extend(_parts(choice))
    return "\0".join("".join(texts[index]) for index in sorted(texts)) if texts else None


def repetition(text: str) -> float | None:
    """Share of the answer's word 4-grams that occurred before in it.

    Formula: 1 − different 4-grams / 4-grams. Unit: 0 to 1. Undefined: None below 4 words.
    """
    words = text.split()
    grams = Counter(tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1))
    return 1 - len(grams) / grams.total() if grams else None


def _payloads(body: bytes) -> list[dict[str, Any] | None]:
    events = [event for event in body.split(b"\n\n") if event.startswith(b"data: ")]
    return [_loaded(event[6:]) for event in events if event != b"data: [DONE]"]


def _loaded(text: bytes) -> dict[str, Any] | None:
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return said if isinstance(said, dict) else None


def _parts(choice: dict[str, Any]) -> list[str]:
    said = choice.get("delta") or choice.get("message") or choice
    parts = [said.get(key) for key in ("reasoning_content", "content", "text")]
    for call in said.get("tool_calls") or ():
        function = call.get("function") or {}
        parts += [function.get("name"), function.get("arguments")]
    return [part for part in parts if isinstance(part, str)]
