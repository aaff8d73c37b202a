"""What every ports.Asker must do; and what only the one over HTTP can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pytest

from orchestrator.adapters.http.asker import HttpAsker, request_head
from orchestrator.adapters.simulated.asker import SimulatedAsker
from orchestrator.adapters.simulated.in_process import SimulatedDeployer
from orchestrator.adapters.simulated.world import SimulatedWorld
from orchestrator.ports import Answer, Ask, Asker, Endpoint
from orchestrator.records import RequestError
from orchestrator.run.suites.openai import chat, completion, read
from tests.adapters.http.conftest import CLOSE, byte_server, chunked
from tests.adapters.served import served
from tests.adapters.simulated.build import deployment


class Asking(Protocol):
    def __call__(self, *asks: Ask, in_flight: int = 1) -> list[Answer]: ...


@contextmanager
def asking(
    kind: str, *, length: int = 3, body_limit: int = 2**22, **simulated: Any
) -> Iterator[Asking]:
    """Asks an engine of its own, over HTTP or on virtual time."""
    made = deployment(length, engine={"max_model_len": 512}, **simulated)
    if kind == "http":
        with served(made) as endpoint:
            yield _of(HttpAsker(body_limit=body_limit), endpoint)
    else:
        world = SimulatedWorld()
        endpoint = SimulatedDeployer(world).start(made, name="arm", timeout_s=1e9)
        yield _of(SimulatedAsker(world, body_limit=body_limit), endpoint)


def _of(asker: Asker, endpoint: Endpoint) -> Asking:
    def ask(*asks: Ask, in_flight: int = 1) -> list[Answer]:
        return asker.ask(endpoint, asks, in_flight=in_flight)

    return ask


both = pytest.mark.parametrize("kind", ["http", "simulated"])


@both
def test_an_answer_is_kept_as_it_came(kind: str) -> None:
    with asking(kind) as ask:
        (answer,) = ask(chat("tiny", "hello", temperature=0, max_tokens=8, ignore_eos=True))
    assert (answer.status, answer.error, answer.events) == (200, None, ())
    assert answer.content_type is not None and answer.content_type.startswith("application/json")
    assert json.loads(answer.body)["usage"]["completion_tokens"] == 8
    assert answer.seconds > 0


@both
def test_a_stream_is_its_events_in_time(kind: str) -> None:
    request = {"temperature": 0, "max_tokens": 12, "ignore_eos": True}
    with asking(kind) as ask:
        whole, stream = ask(
            completion("tiny", "hello", **request),
            completion("tiny", "hello", **request, stream=True),
        )
    times = [at_s for at_s, _ in stream.events]
    assert stream.events[-1][1] == "[DONE]"
    assert 3 < len(times) <= 13
    assert times == sorted(times) and times[-1] <= stream.seconds
    assert read(stream).text == read(whole).text != ""
    assert read(stream).first.finish_reason == "length"


@both
def test_a_refusal_is_an_answer(kind: str) -> None:
    asks = (
        Ask(body=b"{"),
        Ask(body=b"\xff\xfe"),
        Ask(body=b"{}", headers=(("Content-Type", "text/plain"),)),
        Ask(path="/nowhere"),
        Ask(method="GET"),
        Ask(method="DELETE", path="/health"),
    )
    with asking(kind) as ask:
        answers = ask(*asks)
    assert [answer.status for answer in answers] == [400, 400, 415, 404, 405, 405]
    assert all(answer.error is None for answer in answers)
    assert (read(answers[0]).error or "").startswith("HTTP 400: the body is not JSON")


@both
def test_any_method_can_be_sent(kind: str) -> None:
    with asking(kind) as ask:
        answers = ask(
            Ask(method="GET", path="/health", headers=()),
            Ask(method="GET", path="/v1/models", headers=()),
            Ask(method="PURGE", path="/health"),
        )
    assert [answer.status for answer in answers] == [200, 200, 405]
    assert json.loads(answers[1].body)["data"][0]["max_model_len"] == 512


@both
def test_the_client_may_leave_after_some_events(kind: str) -> None:
    def leaving(events: int) -> Ask:
        ask = completion("tiny", "hello", max_tokens=300, ignore_eos=True, stream=True)
        return Ask(ask.path, ask.body, abandon_after_events=events)

    with asking(kind) as ask:
        at_head, at_third = ask(leaving(0), leaving(3))
        (after,) = ask(completion("tiny", "hello", max_tokens=4))
    assert (at_head.abandoned, at_head.status, at_head.events) == (True, 200, ())
    assert (at_third.abandoned, at_third.error, len(at_third.events)) == (True, None, 3)
    assert after.status == 200


@both
def test_the_client_may_leave_after_some_time(kind: str) -> None:
    # On the scaled clock of the HTTP server a token takes a tenth of a millisecond.
    body = completion("tiny", "hello", max_tokens=400, ignore_eos=True).body
    slow = {"target_fixed_s": 5.0}
    with asking(kind, length=0, **slow) as ask:
        (answer,) = ask(Ask("/v1/completions", body, abandon_after_s=0.2))
    assert (answer.abandoned, answer.status, answer.error) == (True, None, None)
    assert answer.seconds >= 0.199  # the loop's clock ticks in milliseconds


@both
def test_a_timeout_ends_the_wait_and_says_so(kind: str) -> None:
    body = completion("tiny", "hello", max_tokens=400, ignore_eos=True).body
    with asking(kind, length=0, target_fixed_s=5.0) as ask:
        (answer,) = ask(Ask("/v1/completions", body, timeout_s=0.2))
    assert (answer.error, answer.abandoned) == (RequestError.TOTAL_TIMEOUT, False)
    assert "0.2 s" in (answer.error_text or "")


@both
def test_a_slow_sender_is_slow_and_answered(kind: str) -> None:
    body = completion("tiny", "hello", max_tokens=4).body
    with asking(kind) as ask:
        (answer,) = ask(Ask("/v1/completions", body, send_bytes_per_s=len(body) / 0.3))
    assert answer.status == 200
    assert answer.seconds >= 0.25


@both
def test_a_slow_reader_gets_everything_in_its_time(kind: str) -> None:
    body = completion("tiny", "hello", max_tokens=64, ignore_eos=True, stream=True).body
    with asking(kind) as ask:
        (answer,) = ask(Ask("/v1/completions", body, read_bytes_per_s=40_000))
    assert read(answer).done
    assert answer.seconds >= 0.8 * len(answer.body) / 40_000


@both
def test_of_a_long_answer_so_much_is_kept(kind: str) -> None:
    with asking(kind, body_limit=100) as ask:
        (answer,) = ask(completion("tiny", "hello", max_tokens=64, ignore_eos=True))
    assert (len(answer.body), answer.truncated_body, answer.error) == (100, True, None)


@both
def test_answers_are_in_the_order_of_the_requests(kind: str) -> None:
    lengths = [30, 1, 9, 4, 17, 2]
    asks = [completion("tiny", "hello", max_tokens=n, ignore_eos=True) for n in lengths]
    with asking(kind) as ask:
        answers = ask(*asks, in_flight=3)
    assert [(read(a).usage or {})["completion_tokens"] for a in answers] == lengths


@both
def test_a_server_that_dies_is_an_error_not_an_exception(kind: str) -> None:
    dying = {"faults": {"defects": ["crashes_on_prompt_logprobs"]}}
    with asking(kind, **dying) as ask:
        (killing,) = ask(completion("tiny", "hello", prompt_logprobs=1))
        (after,) = ask(completion("tiny", "hello"))
    assert killing.error is RequestError.RESET and killing.status is None
    assert after.error is RequestError.CONNECT and after.status is None


@both
def test_both_say_the_same(kind: str) -> None:
    """The same engine, asked the same, answers the same over either way."""
    request = {"temperature": 0.0, "max_tokens": 16, "return_token_ids": True}
    with asking(kind) as ask, asking("simulated") as other:
        (here,), (there,) = (
            each(chat("tiny", "say something", **request)) for each in (ask, other)
        )
    assert read(here).first.token_ids == read(there).first.token_ids
    assert read(here).text == read(there).text


def test_in_flight_must_be_positive() -> None:
    with asking("simulated") as ask, pytest.raises(ValueError, match="in_flight >= 1"):
        ask(Ask(), in_flight=0)


def test_what_an_ask_says_goes_as_it_is() -> None:
    endpoint = Endpoint("e", "http://localhost:8000/baseline", "m", {"Authorization": "Bearer k"})
    plain = request_head(endpoint, Ask(body=b"{}")).decode().split("\r\n")
    assert plain[0] == "POST /baseline/v1/chat/completions HTTP/1.1"
    assert {"Host: localhost:8000", "Authorization: Bearer k", "Content-Length: 2"} <= set(plain)
    odd = Ask(headers=(("content-length", "7"), ("Host", "x"), ("X-Odd", "\udcff")))
    raw = request_head(endpoint, odd)
    assert b"content-length: 7" in raw and b"Content-Length" not in raw
    assert b"Host: x" in raw and b"localhost" not in raw
    assert b"X-Odd: \xff" in raw


HEAD_ONLY = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"


@pytest.mark.parametrize(
    ("ask", "script", "status", "error"),
    [
        (Ask(method="HEAD"), (HEAD_ONLY,), 200, None),
        (Ask(), (b"HTTP/1.1 204 No Content\r\n\r\n",), 204, None),
        (Ask(), (b"HTTP/1.1 100 Continue\r\n\r\n" + chunked(b"x"),), 200, None),
        (Ask(), (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", CLOSE), 200, None),
        (Ask(), (HEAD_ONLY + b"short", CLOSE), 200, RequestError.TRUNCATED),
        (Ask(), (CLOSE,), None, RequestError.RESET),
        (Ask(), (b"I am no HTTP server\r\n\r\n",), None, RequestError.PROTOCOL),
        (Ask(), (chunked(b"data: 1\n\n", end=False), CLOSE), 200, RequestError.TRUNCATED),
    ],
)
def test_whatever_bytes_come_it_ends(
    ask: Ask, script: tuple[object, ...], status: int | None, error: RequestError | None
) -> None:
    with byte_server(script) as server:
        (answer,) = HttpAsker().ask(server.endpoint(), [ask])
    assert (answer.status, answer.error) == (status, error)


def test_nobody_listening_is_an_error() -> None:
    with byte_server() as server:
        endpoint = server.endpoint()
    (answer,) = HttpAsker().ask(endpoint, [Ask()])
    assert (answer.error, answer.status) == (RequestError.CONNECT, None)


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_the_client_leaves_though_all_the_rest_came_in_the_same_read(wanted: int) -> None:
    script = (chunked(b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n", b"data: [DONE]\n\n"),)
    with byte_server(script) as server:
        (answer,) = HttpAsker().ask(server.endpoint(), [Ask(abandon_after_events=wanted)])
    assert (answer.abandoned, answer.status, answer.error) == (True, 200, None)
    assert len(answer.events) == wanted


def test_a_client_that_would_leave_reads_a_refusal_to_its_end() -> None:
    refusal = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 6\r\n\r\n"
    with byte_server((refusal, b"broken")) as server:
        (answer,) = HttpAsker().ask(server.endpoint(), [Ask(abandon_after_events=0)])
    assert (answer.abandoned, answer.status, answer.body) == (False, 500, "broken")
