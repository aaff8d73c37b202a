"""Requests that are not what the interface says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from orchestrator.ports import Ask
from orchestrator.run.suites.boundary_cases.case import (
    CHAT,
    COMPLETIONS,
    LONG_TIMEOUT_S,
    BoundaryCase,
    chat,
    completion,
    one,
    raw,
)

TOO_LARGE_BYTES = 4 * 2**20
"""Of text: far past what any model reads; each such body is kept in the record."""

BODIES: tuple[tuple[str, bytes], ...] = (
    ("empty", b""),
    ("cut_off", b'{"prompt": "hello", "max_tok'),
    ("not_json", b"prompt=hello&max_tokens=8"),
    ("a_list", b"[]"),
    ("null", b"null"),
    ("a_number", b"3"),
    ("single_quotes", b"{'prompt': 'hello'}"),
    ("two_objects", b'{"prompt": "a"}{"prompt": "b"}'),
    ("deeply_nested", b"[" * 20_000 + b"]" * 20_000),
    ("nested_in_prompt", b'{"prompt": ' + b"[" * 2_000 + b"1" + b"]" * 2_000 + b"}"),
    ("binary", bytes(range(256)) * 4),
    ("byte_order_mark", b"\xef\xbb\xbf{}"),
)

WRONG_TYPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("prompt_number", {"prompt": 7}),
    ("prompt_object", {"prompt": {"text": "hello"}}),
    ("prompt_mixed", {"prompt": ["text", 5, None]}),
    ("max_tokens_text", {"max_tokens": "ten"}),
    ("max_tokens_fraction", {"max_tokens": 7.5}),
    ("temperature_text", {"temperature": "hot"}),
    ("temperature_list", {"temperature": [1]}),
    ("top_p_object", {"top_p": {}}),
    ("n_fraction", {"n": 1.5}),
    ("stream_text", {"stream": "perhaps"}),
    ("stop_number", {"stop": 5}),
    ("stop_nested", {"stop": [["a"]]}),
    ("seed_text", {"seed": "lucky"}),
    ("logit_bias_list", {"logit_bias": [1, 2]}),
)

MESSAGES: tuple[tuple[str, Any], ...] = (
    ("text", "hello"),
    ("none", []),
    ("empty_object", [{}]),
    ("numbers", [1, 2]),
    ("content_number", [{"role": "user", "content": 5}]),
    ("content_unknown_part", [{"role": "user", "content": [{"type": "smell", "smell": "tar"}]}]),
)

CONTENT_TYPES: tuple[tuple[str, str | None], ...] = (
    ("plain_text", "text/plain"),
    ("form", "application/x-www-form-urlencoded"),
    ("multipart_without_boundary", "multipart/form-data"),
    ("unknown", "application/x-nonsense"),
    ("absent", None),
    ("other_charset", "application/json; charset=utf-16"),
)


def cases() -> Iterator[BoundaryCase]:
    yield BoundaryCase(
        "malformed_json",
        "refuse",
        lambda model: tuple(raw(body) for _, body in BODIES),
        parts=tuple(name for name, _ in BODIES),
    )
    yield BoundaryCase(
        "wrong_types",
        "refuse",
        lambda model: tuple(
            completion(model, **{"prompt": "hello", **fields}) for _, fields in WRONG_TYPES
        ),
        parts=tuple(name for name, _ in WRONG_TYPES),
    )
    yield BoundaryCase(
        "wrong_messages",
        "refuse",
        lambda model: tuple(_messages(model, messages) for _, messages in MESSAGES),
        parts=tuple(name for name, _ in MESSAGES),
    )
    yield one(
        "unknown_role", "either", lambda m: _messages(m, [{"role": "wizard", "content": "hello"}])
    )
    yield BoundaryCase(
        "wrong_content_type",
        "either",
        lambda model: tuple(_typed(model, kind) for _, kind in CONTENT_TYPES),
        parts=tuple(name for name, _ in CONTENT_TYPES),
    )
    yield one("wrong_encoding_header", "either", _not_gzip)
    yield one("length_header_too_short", "refuse", _shorter_than_said)
    yield one("unknown_model", "refuse", lambda model: completion(model + "-x", "hello"))
    yield one("unknown_field", "either", lambda model: completion(model, "hello", wibble={"a": 1}))
    yield one("wrong_method", "refuse", lambda model: Ask(path=COMPLETIONS, method="DELETE"))
    yield one("large_header", "either", _large_header)
    yield one("body_too_large", "refuse", _too_large, timed=False)
    yield one(
        "message_too_large",
        "refuse",
        lambda m: chat(m, "word " * (TOO_LARGE_BYTES // 5), timeout_s=LONG_TIMEOUT_S),
        timed=False,
    )


def _messages(model: str, messages: Any) -> Ask:
    body = {"model": model, "messages": messages, "max_tokens": 8, "temperature": 0}
    return raw(json.dumps(body).encode(), path=CHAT)


def _typed(model: str, kind: str | None) -> Ask:
    headers = () if kind is None else (("Content-Type", kind),)
    return raw(completion(model, "hello").body, headers=headers)


def _not_gzip(model: str) -> Ask:
    headers = (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))
    return raw(completion(model, "hello").body, headers=headers)


def _shorter_than_said(model: str) -> Ask:
    headers = (("Content-Type", "application/json"), ("Content-Length", "20"))
    return raw(completion(model, "hello").body, headers=headers)


def _large_header(model: str) -> Ask:
    headers = (("Content-Type", "application/json"), ("X-Large", "x" * 60_000))
    return raw(completion(model, "hello").body, headers=headers)


def _too_large(model: str) -> Ask:
    # One unbroken text: the part of a tokenizer that is slowest on it is met as well.
    return completion(model, "a" * TOO_LARGE_BYTES, timeout_s=LONG_TIMEOUT_S)
