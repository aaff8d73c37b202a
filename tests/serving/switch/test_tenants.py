"""Several tenants on one switch: what one may do, and what nobody can do to the others."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orchestrator.switch.keys import key_hash
from tests.serving.switch.room import Engine, Got, Switch, ask, question, switch, wait_for

pytestmark = pytest.mark.slow  # a switch and two engines, on real time

KEYS = {name: "sk-switch-" + name.ljust(64, "0") for name in ("good", "bad", "small")}
PATIENCE_S = 3.0
"""What the well-behaved tenant may have to wait, on a machine that does much else; docs/switch.md
states it."""


@pytest.fixture(scope="module")
def front(arms: dict[str, Engine], folder: Path) -> Iterator[Switch]:
    limits: dict[str, dict[str, Any]] = {
        "good": {},
        "bad": {"concurrency": 4, "requests_per_minute": 120.0},
        "small": {"tokens_per_minute": 100.0},
    }
    tenants = [
        {"name": name, "keys_sha256": [key_hash(KEYS[name])], **limit}
        for name, limit in limits.items()
    ]
    bounds = {"body_bytes": 20_000, "max_tokens": 5000, "body_s": 1.0}
    health = {"period_s": 8.0}  # the simulated engine makes up a long answer in one go
    with switch(folder / "tenants", tenants=tenants, limits=bounds, health=health) as one:
        wait_for(lambda: one.board.standing().share == 1.0)
        yield one


def as_tenant(front: Switch, name: str, said: Any = None, **more: Any) -> Got:
    headers = {"Authorization": f"Bearer {KEYS[name]}", **more.pop("headers", {})}
    return ask(front.port, said or question(), headers=headers, **more)


def test_without_a_key_nobody_is_served(front: Switch, arms: dict[str, Engine]) -> None:
    for headers in ({}, {"Authorization": "Bearer sk-switch-" + "f" * 64}, {"Authorization": "x"}):
        got = ask(front.port, question(), headers=headers)
        assert got.status == 401
        assert got.said["error"]["type"] == "AuthenticationError"
    assert as_tenant(front, "good").status == 200


def test_keys_and_dangerous_headers_do_not_reach_an_engine(
    front: Switch, arms: dict[str, Engine]
) -> None:
    headers = {
        "Cookie": "a=b",
        "X-Data-Parallel-Rank": "3",
        "X-Forwarded-For": "1.2.3.4",
        "Traceparent": "00-1-2-00",
        "X-Prompt-Category": "code",
    }
    assert as_tenant(front, "good", headers=headers).status == 200
    seen = {name.lower(): value for name, value in arms["speculative"].headers.items()}
    assert seen["traceparent"] == "00-1-2-00"
    assert seen["x-prompt-category"] == "code"
    assert not {"authorization", "cookie", "x-data-parallel-rank", "x-forwarded-for"} & set(seen)


def test_each_tenant_has_a_prefix_cache_of_its_own(front: Switch, arms: dict[str, Engine]) -> None:
    def salt(name: str, **more: Any) -> str:
        assert as_tenant(front, name, question(**more)).status == 200
        return str(json.loads(arms["speculative"].body)["cache_salt"])

    good = salt("good")
    assert good == salt("good") and len(good) == 64
    assert good != salt("bad")
    assert good != salt("good", cache_salt="mine"), "a tenant may divide its own further"
    assert salt("bad", cache_salt=good) != good, "and not get into another's"


def test_limits_are_refused_in_openais_words_with_the_time_to_come_again(
    front: Switch,
) -> None:
    first = as_tenant(front, "small", question(max_tokens=60))
    assert first.status == 200
    got = as_tenant(front, "small", question(max_tokens=60))
    assert got.status == 429
    assert got.said["error"]["param"] == "tokens"
    assert int(got.headers["retry-after"]) >= 1
    assert as_tenant(front, "good").status == 200


def test_what_an_engine_counts_replaces_the_estimate(front: Switch) -> None:
    allowance = front_allowance(front, "good")
    allowance._tokens.per_minute = 1e-3  # it is counted from here on, and hardly flows in
    asked = question(stream=True, max_tokens=8)
    left = allowance._tokens.left(time.monotonic())
    used = as_tenant(front, "good", {**asked, "stream_options": {"include_usage": True}})
    total = json.loads(used.body.split(b"\n\n")[-3][6:])["usage"]["total_tokens"]
    wait_for(lambda: allowance.in_flight == 0)
    assert left - allowance._tokens.left(time.monotonic()) == pytest.approx(total, abs=0.01)
    allowance._tokens.per_minute = None


@pytest.mark.parametrize(
    ("said", "param"),
    [
        ({"max_tokens": 5001}, "max_tokens"),
        ({"n": 100}, "n"),
        ({"prompt_logprobs": -1}, "prompt_logprobs"),
        ({"prompt": ["x"] * 50}, "prompt"),
    ],
)
def test_too_much_is_refused_before_an_engine_sees_it(
    said: dict[str, Any], param: str, front: Switch, arms: dict[str, Engine]
) -> None:
    got = as_tenant(front, "good", question(**said))
    assert (got.status, got.said["error"]["param"]) == (400, param)


def test_oversize_bodies_are_refused_told_or_not(front: Switch) -> None:
    assert as_tenant(front, "good", question("x" * 30_000)).status == 413
    with socket.create_connection(("127.0.0.1", front.port)) as caller:
        caller.sendall(_head("good", "Transfer-Encoding: chunked"))
        for _ in range(12):
            caller.sendall(b"800\r\n" + b"x" * 2048 + b"\r\n")
        assert b"413" in caller.recv(100)


def test_a_body_that_never_comes_is_not_waited_for(front: Switch) -> None:
    with socket.create_connection(("127.0.0.1", front.port)) as caller:
        caller.sendall(_head("good", "Content-Length: 100") + b"{")
        assert b"408" in caller.recv(100)


def test_nobody_suffers_from_what_another_does(front: Switch, arms: dict[str, Engine]) -> None:
    """Floods, slow readers, slow writers, oversize, malformed, guessed keys: all at once."""
    over = threading.Event()
    statuses: list[int] = []
    held: list[socket.socket] = []

    def flood() -> None:
        while not over.is_set():
            statuses.append(as_tenant(front, "bad").status)

    def misbehave() -> None:
        number = 0
        while not over.is_set():
            number += 1
            key = {"Authorization": f"Bearer sk-switch-{number:064x}"}
            statuses.append(ask(front.port, question(), headers=key).status)
            statuses.append(as_tenant(front, "bad", body=b"{" * 1000).status)
            statuses.append(as_tenant(front, "bad", question("x" * 30_000)).status)

    for index in range(8):
        one = socket.create_connection(("127.0.0.1", front.port))
        held.append(one)
        if index % 2:  # a stream that nobody reads
            said = json.dumps(question(max_tokens=1500, stream=True, ignore_eos=True)).encode()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(_head("bad", f"Content-Length: {len(said)}") + said)
        else:  # a body that comes a byte at a time
            one.sendall(_head("bad", "Content-Length: 1000") + b"{")
    with ThreadPoolExecutor(4) as threads:
        for work in (flood, flood, misbehave, misbehave):
            threads.submit(work)
        waits = []
        try:
            for _ in range(15):
                begun = time.monotonic()
                got = as_tenant(front, "good")
                waits.append(time.monotonic() - begun)
                assert got.status == 200
                time.sleep(0.02)
        finally:
            over.set()
    for one in held:
        one.close()

    assert {401, 413, 429} <= set(statuses)
    assert sorted(waits)[-2] < PATIENCE_S
    wait_for(lambda: front.board.callers == 0)
    wait_for(lambda: front_allowance(front, "bad").in_flight == 0)
    wait_for(lambda: arms["speculative"].running == 0)
    assert all(arm.up for arm in front.board.arms.values())


def front_allowance(front: Switch, name: str) -> Any:
    return front.ingress._door._guests[name].allowance


def _head(name: str, length: str) -> bytes:
    return (
        f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEYS[name]}\r\n"
        f"Content-Type: application/json\r\n{length}\r\n\r\n"
    ).encode()
