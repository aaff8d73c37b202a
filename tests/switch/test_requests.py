"""What a body asks for, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.switch.answer_text import answer_text, repetition
from orchestrator.switch.asked import beyond_limits, read_body, rewritten
from orchestrator.switch.config import RequestLimits, Sticky
from orchestrator.switch.keys import key_from, key_hash, owner
from orchestrator.switch.stream import StreamWatch, count, drafted

PATH = "/v1/completions"
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), PLAIN, max_size=6), st.booleans())
def test_only_what_is_said_is_added(said: dict[str, Any], spaced: bool) -> None:
    body = json.dumps(said, indent=2 if spaced else None).encode()
    asked = read_body(PATH, body)
    made = rewritten(asked, salt="s", count_tokens=True, largest=None)
    expected = {**said, "cache_salt": "s"}
    if said.get("stream") is True and "stream_options" not in said:
        expected["stream_options"] = {"include_usage": True}
    assert json.loads(made) == expected
    assert rewritten(asked, salt=None, count_tokens=False, largest=None) == body


@pytest.mark.parametrize(
    ("body", "path"),
    [(b"[1]", PATH), (b"{", PATH), (b"", PATH), (b'{"stream": true}', "/tokenize")],
)
def test_what_is_not_understood_is_left_as_it_is(body: bytes, path: str) -> None:
    asked = read_body(path, body)
    assert rewritten(asked, salt="s", count_tokens=True, largest=9) == body


def test_a_salt_of_the_callers_own_does_not_win() -> None:
    for body in (b'{"cache_salt": "other"}', b'\xef\xbb\xbf{"cache_salt": "other"}'):
        made = rewritten(read_body(PATH, body), salt="ours", count_tokens=False, largest=None)
        assert json.loads(made) == {"cache_salt": "ours"}


@pytest.mark.parametrize(
    ("said", "param"),
    [
        ({"max_tokens": 101}, "max_tokens"),
        ({"max_completion_tokens": 10**30}, "max_completion_tokens"),
        ({"max_tokens": float("nan")}, "max_tokens"),
        ({"n": 9}, "n"),
        ({"best_of": 9}, "best_of"),
        ({"prompt_logprobs": -1}, "prompt_logprobs"),
        ({"logprobs": 21}, "logprobs"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"prompt": ["a"] * 5, "n": 2}, "prompt"),
        ({"prompt": [[1, 2]] * 9}, "prompt"),
        ({"max_tokens": 100, "n": 8, "stop": ["x"], "logprobs": True, "prompt": [1] * 99}, None),
        ({"max_tokens": "many"}, None),
        ({}, None),
    ],
)
def test_limits_of_a_request(said: dict[str, Any], param: str | None) -> None:
    limits = RequestLimits(max_tokens=100)
    found = beyond_limits(read_body(PATH, json.dumps(said).encode()), limits)
    assert (None if found is None else found[0]) == param


def test_an_answer_without_length_gets_the_limit() -> None:
    made = rewritten(read_body(PATH, b"{}"), salt=None, count_tokens=False, largest=50)
    assert json.loads(made) == {"max_tokens": 50}


def test_who_asks() -> None:
    where = Sticky()
    asked = read_body(PATH, b'{"user": "u"}')
    assert asked.sticky({"x-session-id": "s"}, where) == "s"
    assert asked.sticky({}, where) == "u"
    assert read_body(PATH, b'{"user": 1}').sticky({}, where) is None


EVENTS = [
    b'data: {"choices":[{"text":"a \\"usage\\" b"}]}',
    b": comment",
    b'data: {"choices":[{"text":"c"}],"usage":null}',
    b'data: {"choices":[{"text":"d"}],"usage":{"completion_tokens":3}}',
    b'data: {"choices":[],"usage":{"completion_tokens":4,"prompt_tokens":2},"metrics":'
    b'{"speculative_decoding":{"num_spec_steps":2,"num_accepted_draft_tokens":1,'
    b'"num_draft_tokens":6}}}',
    b"data: [DONE]",
]


@given(st.lists(st.integers(1, 60), max_size=40), st.booleans())
def test_however_a_stream_is_cut_it_is_read_the_same(cuts: list[int], strip: bool) -> None:
    whole = b"".join(event + b"\n\n" for event in EVENTS)
    watch, out, rest = StreamWatch(strip_usage=strip), b"", whole
    for at_s, cut in enumerate(cuts):
        out += watch.feed(rest[:cut], float(at_s)) if rest else b""
        rest = rest[cut:]
    out += watch.feed(rest, 99.0) if rest else b""
    out += watch.finish()
    kept = [event for event in EVENTS if not (strip and b'"choices":[]' in event)]
    assert out == b"".join(event + b"\n\n" for event in kept)
    assert count(watch.usage, "completion_tokens") == 4
    assert drafted(watch.metrics) == (2, 1, 6)
    assert watch.done and not watch.error


def test_a_stream_that_never_ends_an_event_is_not_kept_in_memory() -> None:
    watch = StreamWatch(strip_usage=True)
    out = b"".join(watch.feed(b"x" * 2**16, 0.0) for _ in range(64))
    assert len(out) >= 48 * 2**16


def test_the_text_of_answers() -> None:
    stream = (
        b'data: {"choices":[{"index":1,"delta":{"content":"B"}}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"A"}}]}\n\ndata: [DONE]\n\n'
    )
    whole = b'{"choices":[{"index":0,"text":"A"},{"index":1,"text":"B"}]}'
    assert answer_text(stream, streamed=True) == answer_text(whole, streamed=False) == "A\0B"
    call = {"function": {"name": "f", "arguments": "{}"}}
    told = json.dumps({"choices": [{"message": {"content": None, "tool_calls": [call]}}]})
    assert answer_text(told.encode(), streamed=False) == "f{}"
    assert answer_text(b"{}", streamed=False) is None
    assert answer_text(b"<html>", streamed=False) is None
    assert repetition("a b c") is None
    assert repetition("a b c d a b c d a b c d") == pytest.approx(5 / 9)


def test_keys_are_known_by_their_hash_alone() -> None:
    key = key_from(bytes(range(32)))
    owners = [("a", key_hash("x" * 40)), ("b", key_hash(key))]
    assert owner(key, owners) == "b"
    assert owner(key + "0", owners) is None
    assert owner("", owners) is None
    assert owner("x" * 10_000, owners) is None
    with pytest.raises(ValueError, match="32 random bytes"):
        key_from(b"short")
