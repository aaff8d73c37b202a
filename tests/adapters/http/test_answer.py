"""Tokens, text and errors out of events, as vLLM and other servers write them."""

from __future__ import annotations

from typing import Any

import orjson

from orchestrator.adapters.http.answer import read_answer
from orchestrator.adapters.http.sse import Event
from orchestrator.records import RequestError

DONE = b"[DONE]"


def events(*chunks: dict[str, Any] | bytes) -> list[Event]:
    """One event a second, from t = 1."""
    return [
        Event(float(i + 1), "", chunk if isinstance(chunk, bytes) else orjson.dumps(chunk))
        for i, chunk in enumerate(chunks)
    ]


def chat(content: str | None = None, usage: int | None = None, **choice: Any) -> dict[str, Any]:
    delta = choice.pop("delta", {} if content is None else {"content": content})
    chunk: dict[str, Any] = {
        "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}]
    }
    if usage is not None:
        chunk["usage"] = {"prompt_tokens": 9, "completion_tokens": usage}
    return chunk


def closing(tokens: int) -> dict[str, Any]:
    return {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": tokens}}


ROLE = {"role": "assistant", "content": ""}


def test_growth_of_usage_attributes_tokens_to_chunks() -> None:
    answer = read_answer(
        events(
            chat(usage=0, delta=ROLE),  # t=1: opens the stream, carries no token
            chat("He", usage=1),  # t=2
            chat("llo wor", usage=4),  # t=3: three tokens in one chunk
            chat("ld", usage=5, finish_reason="length"),  # t=4
            closing(5),
            DONE,
        )
    )
    assert answer.chunk_s == (2.0, 3.0, 4.0)
    assert answer.chunk_tokens == (1, 3, 1)
    assert answer.tokens_from == "usage_continuous"
    assert (answer.input_tokens, answer.output_tokens) == (9, 5)
    assert (answer.text, answer.finish_reason) == ("Hello world", "length")
    assert answer.done and answer.error is None


def test_a_token_without_text_still_counts() -> None:
    # Half of a character of several bytes, and the end-of-text token: usage grows, text does not.
    answer = read_answer(
        events(chat("", usage=1), chat("你", usage=2), chat("", usage=3), closing(3))
    )
    assert answer.chunk_s == (1.0, 2.0, 3.0)
    assert answer.chunk_tokens == (1, 1, 1)


def test_with_usage_only_at_the_end_the_total_is_known_and_the_chunks_are_not() -> None:
    answer = read_answer(
        events(
            chat(delta=ROLE), chat("a"), chat("bc"), chat(finish_reason="stop"), closing(7), DONE
        )
    )
    assert answer.chunk_s == (2.0, 3.0)
    assert answer.chunk_tokens is None
    assert (answer.output_tokens, answer.tokens_from) == (7, "usage_final")


def test_without_usage_nothing_is_invented() -> None:
    answer = read_answer(events(chat("a"), chat("b", finish_reason="stop"), DONE))
    assert answer.output_tokens is answer.chunk_tokens is answer.input_tokens is None
    assert answer.tokens_from == "none"


def test_an_attribution_that_does_not_add_up_is_dropped() -> None:
    answer = read_answer(events(chat("a", usage=1), chat("b", usage=2), closing(5)))
    assert answer.chunk_tokens is None
    assert (answer.output_tokens, answer.tokens_from) == (5, "usage_final")


def test_token_ids_attribute_where_usage_does_not() -> None:
    answer = read_answer(events(chat("ab", token_ids=[5, 6]), chat("c", token_ids=[7]), closing(3)))
    assert answer.chunk_tokens == (2, 1)
    assert answer.tokens_from == "token_ids"
    assert answer.token_ids == (5, 6, 7)


def test_completions_reasoning_and_tool_calls_are_output() -> None:
    text = {"choices": [{"index": 0, "text": "hi", "finish_reason": None}]}
    assert read_answer(events(text)).text == "hi"
    thought = chat(delta={"reasoning_content": "hm"})
    assert read_answer(events(thought, chat("yes"))).text == "hmyes"
    call = chat(delta={"tool_calls": [{"function": {"arguments": "{"}}]})
    assert read_answer(events(call)).chunk_s == (1.0,)


def test_an_error_in_mid_stream_keeps_what_came_before() -> None:
    broken = {"error": {"message": "engine died", "type": "InternalServerError", "code": 500}}
    answer = read_answer(events(chat("a", usage=1), broken, DONE))
    assert answer.error is RequestError.STREAM_ERROR
    assert answer.error_text == "InternalServerError: engine died"
    assert (answer.text, answer.chunk_s, answer.done) == ("a", (1.0,), False)


def test_an_event_of_type_error_is_an_error() -> None:
    answer = read_answer([Event(0.0, "error", b'{"message": "no"}')])
    assert (answer.error, answer.error_text) == (RequestError.STREAM_ERROR, "no")


def test_what_is_not_json_is_a_fault_of_protocol_that_shows_it() -> None:
    answer = read_answer(events(b"{oops"))
    assert answer.error is RequestError.PROTOCOL
    assert "{oops" in (answer.error_text or "")
    assert read_answer(events(b"[1]")).error is RequestError.PROTOCOL


def test_what_follows_done_is_not_read() -> None:
    assert read_answer(events(chat("a"), DONE, b"{oops")).error is None
