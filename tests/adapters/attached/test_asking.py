"""How a server can be asked, found out with the client that will measure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from orchestrator.adapters.attached.access import Access
from orchestrator.adapters.attached.asking import (
    Counting,
    Question,
    asking,
    how_to_ask,
    weaker,
)
from orchestrator.errors import DeploymentError
from orchestrator.plan.block import Timeouts
from orchestrator.plan.trial import Sampling
from orchestrator.ports import Endpoint
from tests.adapters.attached.fake_server import FakeServer, Usage, serving

EVERYTHING = Question(
    "chat", Sampling(0.8, top_p=0.9, top_k=40, min_p=0.05, seeded=True), True, ("chat", "long")
)
PLAIN = Question("chat", Sampling(0.0, seeded=False), False, ("chat",))
QUICK = Timeouts(5.0, 5.0, 5.0, 5.0)


def ask(
    server: FakeServer, *questions: Question, key: str | None = None, access: Access | None = None
) -> Counting:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    used = access or Access(headers)
    endpoint = Endpoint("x", server.url, "m", dict(used.headers))
    return how_to_ask(server.url, questions, asking(endpoint, used, QUICK), used)


def refusal(server: FakeServer, *questions: Question, **given: str) -> DeploymentError:
    with pytest.raises(DeploymentError) as caught:
        ask(server, *questions, **given)  # type: ignore[arg-type]
    assert caught.value.exit_status == 3
    return caught.value


@pytest.mark.parametrize(
    ("behaviour", "usage", "tells"),
    [
        ("continuous", "continuous", True),
        ("final", "final", True),
        ("rejects_continuous", "final", True),
        ("rejects_options", "none", False),
        ("never", "none", False),
    ],
)
def test_what_a_server_honours_counts_not_what_it_puts_up_with(
    behaviour: Usage, usage: str, tells: bool
) -> None:
    with serving(FakeServer(usage=behaviour)) as server:
        assert ask(server, PLAIN) == Counting(usage, tells)  # type: ignore[arg-type]


def test_usage_at_the_end_does_not_look_continuous_when_chunks_are_large() -> None:
    with serving(FakeServer(usage="final", tokens_per_chunk=5)) as server:
        assert ask(server, PLAIN).usage == "final"
    with serving(FakeServer(usage="continuous", tokens_per_chunk=5)) as server:
        assert ask(server, PLAIN).usage == "continuous"


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ([("continuous", True), ("continuous", True)], ("continuous", True)),
        ([("continuous", True), ("final", True)], ("final", True)),
        ([("none", False), ("continuous", True)], ("none", False)),
    ],
)
def test_both_arms_are_asked_as_the_weaker_can_answer(
    counted: Sequence[tuple[str, bool]], expected: tuple[str, bool]
) -> None:
    both = [Counting(*each) for each in counted]  # type: ignore[arg-type]
    assert weaker(both) == weaker(both[::-1]) == Counting(*expected)  # type: ignore[arg-type]


def test_a_server_that_takes_everything_is_asked_twice_a_question() -> None:
    with serving(FakeServer()) as server:
        assert ask(server, EVERYTHING) == Counting("continuous", True)
    bare, full = server.bodies()
    assert not {"ignore_eos", "seed", "top_p", "top_k", "min_p"} & bare.keys()
    assert {"ignore_eos", "seed", "top_p", "top_k", "min_p"} <= full.keys()
    assert bare["temperature"] == full["temperature"] == 0.8


def test_every_field_that_is_refused_is_named_with_what_to_change() -> None:
    """The server names only the first of them; each is tried alone."""
    with serving(FakeServer(refuses=["ignore_eos", "min_p", "top_k", "seed"])) as server:
        fault = refusal(server, EVERYTHING)
    assert fault.failure == "bad_configuration"
    first, *lines = fault.cause.splitlines()
    assert first == f"{server.url} refuses fields that the sweep sends:"
    said = "HTTP 400: unknown field"
    assert [line.strip() for line in lines] == [
        f"ignore_eos ({said} ignore_eos): set fixed_length: false in workload chat, long "
        "(answers then end where they end)",
        f"seed ({said} seed): set sampling.seeded: false",
        f"top_k ({said} top_k): leave out sampling.top_k",
        f"min_p ({said} min_p): leave out sampling.min_p",
    ]


def test_a_plain_request_is_taken_by_the_strictest() -> None:
    strict = FakeServer(
        refuses=["ignore_eos", "min_p", "top_k", "seed"], usage="rejects_continuous"
    )
    with serving(strict) as server:
        assert ask(server, PLAIN) == Counting("final", True)


def test_a_server_that_refuses_even_the_bare_request_is_quoted() -> None:
    with serving(FakeServer(refuses=["temperature"])) as server:
        fault = refusal(server, PLAIN)
    assert "did not answer a chat request at temperature 0: HTTP 400" in fault.cause
    assert "unknown field temperature" in fault.cause


def test_both_kinds_of_endpoint_are_tried_when_both_are_used() -> None:
    completion = Question("completion", Sampling(0.0, seeded=False), False, ("text",))
    with serving(FakeServer()) as server:
        assert ask(server, PLAIN, completion) == Counting("continuous", True)
    paths = {path for path, _, body in server.asked if body is not None}
    assert paths == {"/v1/chat/completions", "/v1/completions"}


def test_a_key_that_only_the_completions_ask_for_is_missed_now_not_in_the_first_trial() -> None:
    """llama.cpp shows its models to everybody."""
    key = "sk-planted-0123456789"
    with serving(FakeServer(key=key, quotes_key=True)) as server:
        assert ask(server, PLAIN, key=key).usage == "continuous"
        wrong = "sk-wrong-9876543210"
        access = Access({"Authorization": f"Bearer {wrong}"}, secret=wrong, key_variable="KEY")
        with pytest.raises(DeploymentError) as caught:
            ask(server, PLAIN, access=access)
    assert "refused the API key: HTTP 401" in caught.value.cause
    assert "check the key in KEY" in caught.value.cause
    assert wrong not in str(caught.value)


def test_no_answer_at_all_is_no_refusal() -> None:
    with serving(FakeServer()) as server:
        pass
    fault = refusal(server, PLAIN)
    assert fault.failure == "start_failed"
    assert "connect" in fault.cause
