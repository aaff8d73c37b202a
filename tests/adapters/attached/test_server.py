"""Is it there, whose is it, and what is it."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapters.attached.access import Access, access_from
from orchestrator.adapters.attached.server import FoundServer, answers, find_server
from orchestrator.adapters.http.pool import Tls
from orchestrator.errors import DeploymentError
from orchestrator.spec.attach import Attach
from tests.adapters.attached.fake_server import (
    LLAMA_CPP,
    SGLANG,
    TGI,
    VLLM,
    FakeServer,
    self_signed,
    server_side,
    serving,
)

KEY = "sk-planted-0123456789"
OPEN = Access()


def keyed(environment: Mapping[str, str]) -> Access:
    section = Attach.model_validate(
        {"baseline": "http://a", "speculative": "http://b", "api_key_env": "SERVER_KEY"}
    )
    return access_from(section, environment)


def find(url: str, access: Access = OPEN, **given: Any) -> FoundServer:
    return find_server(url, access, **({"wanted": None, "timeout_s": 5.0} | given))


def refusal(url: str, access: Access = OPEN, **given: Any) -> str:
    with pytest.raises(DeploymentError) as caught:
        find(url, access, **given)
    assert caught.value.exit_status == 3
    return str(caught.value)


@pytest.mark.parametrize(
    ("pages", "owner", "engine", "version"),
    [
        (VLLM, "vllm", "vllm", "0.32.0"),
        (SGLANG, "sglang", "sglang", "0.5.2"),
        (LLAMA_CPP, "llamacpp", "llama.cpp", "b6000-abcdef"),
        (TGI, "m", "tgi", "3.3.4"),
        ({}, "somebody", "not available", None),
        ({"/version": {"version": "7"}}, "somebody", "not available", None),
        ({"/version": "no JSON", "/info": "[1", "/props": "<html>"}, "vllm", "vllm", None),
    ],
)
def test_each_engine_is_known_by_its_own_page_and_none_is_guessed(
    pages: dict[str, Any], owner: str, engine: str, version: str | None
) -> None:
    with serving(FakeServer(({"id": "m", "owned_by": owner},), pages=pages)) as server:
        found = find(server.url)
    assert (found.identity.engine, found.identity.version) == (engine, version)
    assert not found.simulated


def test_sglang_says_how_it_speculates_and_its_key_is_left_where_it_is() -> None:
    with serving(FakeServer(pages=SGLANG)) as server:
        found = find(server.url)
    assert found.identity.kv_capacity_tokens == 4096
    assert found.identity.speculation == {
        "speculative_algorithm": "EAGLE",
        "speculative_num_steps": 3,
    }
    assert "the key itself" not in repr(found)


def test_a_simulated_server_is_labelled_whatever_else_it_shows() -> None:
    with serving(FakeServer(pages=VLLM, headers={"x-simulated": "true"})) as server:
        found = find(server.url)
    assert found.simulated
    assert found.identity.engine == "simulated"


def test_the_only_model_is_taken_and_of_several_one_must_be_named() -> None:
    with serving(FakeServer([{"id": "b"}, {"id": "a"}])) as server:
        text = refusal(server.url)
        assert "serves 2 models (a, b); name the one to ask in attach.model" in text
        assert find(server.url, wanted="b").model == "b"
        assert find(server.url, hint="a").model == "a"
    with serving(FakeServer()) as server:
        assert find(server.url, hint="something-else").model == "m"


def test_a_server_without_a_list_of_models_needs_a_name() -> None:
    with serving(FakeServer(models=())) as server:
        assert "does not say which model it serves (HTTP 404" in refusal(server.url)
        assert find(server.url, wanted="mine").model == "mine"


def test_the_key_goes_with_the_request_and_a_wrong_one_is_told_without_showing_it() -> None:
    with serving(FakeServer(key=KEY, quotes_key=True)) as server:
        assert find(server.url, keyed({"SERVER_KEY": KEY})).model == "m"
        text = refusal(server.url, keyed({"SERVER_KEY": "sk-wrong-9876543210"}))
        assert "refused the API key: HTTP 401; check the key in SERVER_KEY" in text
        assert "sk-wrong" not in text
        assert "name the environment variable that holds its key" in refusal(server.url)


@pytest.mark.parametrize("key", ["", f"{KEY}\n", " spaced", "schlüssel", "a\tb"])
def test_a_key_that_cannot_be_sent_is_refused_before_anything_is(key: str) -> None:
    with pytest.raises(DeploymentError, match="SERVER_KEY must") as caught:
        keyed({"SERVER_KEY": key})
    assert not key.strip() or key.strip() not in str(caught.value)


def test_neither_key_nor_headers_show_in_the_text_of_an_access() -> None:
    access = keyed({"SERVER_KEY": KEY})
    assert KEY not in repr(access)
    assert access.masked({"a": [f"Bearer {KEY}"], KEY: 1}) == {
        "a": ["Bearer ***masked***"],
        "***masked***": 1,
    }
    assert Access(secret="x").masked("x marks the spot") == "x marks the spot"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    text = refusal(f"http://127.0.0.1:{port}")
    assert "start_failed" in text
    assert "is the server running, and is this its address?" in text


def test_while_it_is_loading_it_is_waited_for_but_not_for_ever() -> None:
    waits: list[float] = []
    with serving(FakeServer(loading=2)) as server:
        assert find(server.url, sleep=waits.append).model == "m"
    assert waits == [1.0, 1.0]
    clock = iter(float(second) for second in range(100))
    with serving(FakeServer(loading=1000)) as server:
        text = refusal(server.url, sleep=waits.append, now=lambda: next(clock))
    assert "start_timeout" in text
    assert "loading the model" in text


def test_a_redirect_to_another_server_is_not_followed_with_the_key() -> None:
    with (
        serving(FakeServer()) as other,
        serving(FakeServer(redirect_to=f"{other.url}/v1/models")) as server,
    ):
        assert "answered HTTP 307" in refusal(server.url, keyed({"SERVER_KEY": KEY}))
        assert other.asked == []


def test_a_certificate_of_ones_own_must_be_named(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with serving(FakeServer(), tls=server_side(certificate)) as server:
        assert find(server.url, Access(tls=Tls(str(certificate)))).model == "m"
        assert find(server.url, Access(tls=Tls(verify=False))).model == "m"
        assert "attach.tls_ca_file" in refusal(server.url)


def test_health_is_asked_for_where_it_exists() -> None:
    with serving(FakeServer(pages=VLLM)) as server:
        found = find(server.url)
        assert found.health_path == "/health"
        assert answers(found, OPEN)
    assert not answers(found, OPEN)
    with serving(FakeServer(key=KEY)) as server:
        found = find(server.url, keyed({"SERVER_KEY": KEY}))
        assert found.health_path == "/v1/models"
        assert answers(found, OPEN)  # HTTP 401 is an answer
