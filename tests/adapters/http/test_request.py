"""What is asked of a server."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.adapters.http.request import (
    Origin,
    RequestWriter,
    UsageWanted,
    origin_of,
    turns_to_send,
)
from orchestrator.plan.block import Message
from orchestrator.plan.trial import Sampling
from orchestrator.ports import Endpoint
from tests.adapters.http.conftest import block, prompt

HERE = Endpoint("e", "http://localhost:8000/baseline/", "smol", {"Authorization": "Bearer k"})
HELLO = [Message("user", "hello")]


def written(
    endpoint: Endpoint = HERE, usage: UsageWanted = "continuous", **more: Any
) -> tuple[list[bytes], dict[str, Any]]:
    plan = block(1, max_tokens=12, **more)
    request = RequestWriter(endpoint, plan, usage).request(plan.requests[0], HELLO)
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[-1] == b"Content-Length: %d" % len(body)
    return lines, orjson.loads(body)


def test_a_chat_request() -> None:
    lines, body = written()
    assert lines[0] == b"POST /baseline/v1/chat/completions HTTP/1.1"
    assert b"Host: localhost:8000" in lines
    assert b"Authorization: Bearer k" in lines
    assert body == {
        "model": "smol",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 12,
        "temperature": 0.0,
        "seed": 100,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "ignore_eos": True,
    }


def test_a_completion_request_with_every_sampling_field() -> None:
    sampling = Sampling(0.8, top_p=0.9, top_k=40, min_p=0.05, seeded=False)
    plan = block(1, endpoint="completion", sampling=sampling, fixed_length=False)
    history = [Message("system", "be brief"), Message("user", "hello")]
    request = RequestWriter(HERE, plan, "continuous").request(plan.requests[0], history)
    assert request.startswith(b"POST /baseline/v1/completions HTTP/1.1\r\n")
    body = orjson.loads(request.partition(b"\r\n\r\n")[2])
    assert body["prompt"] == "be brief\n\nhello"
    assert body["temperature"] == 0.8
    assert (body["top_p"], body["top_k"], body["min_p"]) == (0.9, 40, 0.05)
    assert "seed" not in body and "ignore_eos" not in body


def test_less_usage_can_be_asked_for() -> None:
    assert written(usage="final")[1]["stream_options"] == {"include_usage": True}
    assert "stream_options" not in written(usage="none")[1]


def test_a_header_with_a_line_break_is_refused_without_showing_its_value() -> None:
    with pytest.raises(ValueError, match="must be one line") as fault:
        written(Endpoint("e", "http://h", "m", {"Authorization": "Bearer secret\r\n"}))
    assert "secret" not in str(fault.value)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://127.0.0.1:8000/baseline", Origin("127.0.0.1", 8000, False)),
        ("http://example.org", Origin("example.org", 80, False)),
        ("https://example.org/x", Origin("example.org", 443, True)),
        ("http://[::1]:9/", Origin("::1", 9, False)),
    ],
)
def test_where_a_url_leads(url: str, origin: Origin) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "http://", ""])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url must be http"):
        origin_of(url)


def test_which_turns_are_sent() -> None:
    three = prompt(["a", "b", "c"])
    assert turns_to_send(three, "first_turn") == ("a",)
    assert turns_to_send(three, "own") == ("a", "b", "c")
    with pytest.raises(ValueError, match="recorded answer"):
        turns_to_send(three, "reference")
    assert turns_to_send(prompt(["a", "b", "c"], reference=("x", "y")), "reference") == (
        "a",
        "b",
        "c",
    )
