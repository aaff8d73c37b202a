"""A request's body: what it asks for, whether it may, and what it becomes. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.switch.config import RequestLimits, Sticky

GENERATING = ("/v1/chat/completions", "/v1/completions")
BYTES_PER_TOKEN = 4
"""Of a prompt, for the estimate that is charged until the engine has counted."""
UNASKED_TOKENS = 256
"""Charged for an answer without `max_tokens`, until it is counted."""


@dataclass(frozen=True)
class Asked:
    """The body as a mapping; None where it is none (the engine then says what is wrong)."""

    path: str
    body: bytes
    said: Mapping[str, Any] | None

    @property
    def streams(self) -> bool:
        return self.said is not None and self.said.get("stream") is True

    @property
    def greedy(self) -> bool:
        """Whether both arms must give the same text: it says temperature 0 itself."""
        said = self.said or {}
        temperature = said.get("temperature")
        plain = not isinstance(temperature, bool) and temperature == 0
        return plain and said.get("n", 1) in (1, None)

    @property
    def largest_answer(self) -> int | None:
        values = [_whole((self.said or {}).get(key)) for key in ANSWER_KEYS]
        known = [value for value in values if value is not None]
        return max(known) if known else None

    def estimate(self, largest: int | None) -> float:
        """Tokens to charge before anything is counted: prompt and answer.

        `largest` is the limit on `max_tokens`, charged where a request names none.
        """
        choices = _whole((self.said or {}).get("n")) or 1
        answer = self.largest_answer
        if answer is None:
            answer = UNASKED_TOKENS if largest is None else min(largest, UNASKED_TOKENS)
        return len(self.body) / BYTES_PER_TOKEN + answer * max(1, choices)

    def sticky(self, headers: Mapping[str, str], where: Sticky) -> str | None:
        """Who asks: the first header, else the first field of the body, that names them."""
        for header in where.headers:
            if headers.get(header.lower()):
                return headers[header.lower()]
        for key in where.body:
            value = (self.said or {}).get(key)
            if isinstance(value, str) and value:
                return value
        return None


ANSWER_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def read_body(path: str, body: bytes) -> Asked:
    """Never raises: a body that is no JSON object is passed on for the engine to refuse."""
    said: Any = None
    if body:
        try:
            said = orjson.loads(body)
        except orjson.JSONDecodeError:
            try:  # engines' own readers also take NaN, a byte-order mark, long numbers
                said = json.loads(body)
            except (ValueError, RecursionError):
                said = None
    return Asked(path, body, said if isinstance(said, dict) else None)


def beyond_limits(asked: Asked, limits: RequestLimits) -> tuple[str, str] | None:
    """(parameter, rule) of the first that asks for too much; None: it may go."""
    said = asked.said or {}
    bounds: list[tuple[str, int | None]] = [
        *((key, limits.max_tokens) for key in (*ANSWER_KEYS, "min_tokens")),
        *((key, limits.choices) for key in ("n", "best_of", "beam_width")),
        *((key, limits.logprobs) for key in ("top_logprobs", "logprobs", "prompt_logprobs")),
    ]
    for key, most in bounds:
        value = said.get(key)
        if most is None or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not value <= most:
            return key, f"must be at most {most}, got {value}"
        # vLLM takes -1 for "every token of the vocabulary".
        if "logprobs" in key and value < 0:
            return key, f"must be 0 to {most}, got {value}"
    for key in ("stop", "stop_token_ids", "bad_words"):
        value = said.get(key)
        if isinstance(value, list) and len(value) > limits.stops:
            return key, f"must hold at most {limits.stops}, got {len(value)}"
    prompts = said.get("prompt")
    if isinstance(prompts, list) and prompts and isinstance(prompts[0], str | list):
        asks = len(prompts) * (_whole(said.get("n")) or 1)
        if asks > limits.choices:
            return "prompt", f"must ask for at most {limits.choices} answers, got {asks}"
    return None


def rewritten(asked: Asked, *, salt: str | None, count_tokens: bool, largest: int | None) -> bytes:
    """The body that the engine gets.

    `salt` keeps this tenant's prefix cache apart; whoever makes it mixes in a caller's own.
    `count_tokens` asks for the count at a stream's end. A request that names no length gets
    `largest`, where there is a limit. Nothing to add: the very bytes that came.
    """
    if asked.said is None or asked.path not in GENERATING:
        return asked.body
    added: dict[str, Any] = {}
    if salt is not None:
        added["cache_salt"] = salt
    if count_tokens and asks_for_count(asked):
        added["stream_options"] = {"include_usage": True}
    if largest is not None and asked.largest_answer is None:
        added["max_tokens"] = largest
    if not added:
        return asked.body
    body = asked.body.lstrip(b" \t\r\n")
    if added.keys().isdisjoint(asked.said) and body.startswith(b"{"):
        # Beside what came, not instead of it: numbers keep their digits.
        inner = body[1:].lstrip(b" \t\r\n")
        return b"{" + orjson.dumps(added)[1:-1] + (b"" if inner[:1] == b"}" else b",") + inner
    return json.dumps({**asked.said, **added}).encode()


def asks_for_count(asked: Asked) -> bool:
    """Whether the count at a stream's end is there only because we asked for it."""
    return asked.streams and asked.path in GENERATING and "stream_options" not in (asked.said or {})


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
