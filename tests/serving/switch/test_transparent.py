"""A caller cannot tell the switch from the engine behind it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.switch.room import Engine, Switch, ask, question, switch, wait_for

pytestmark = pytest.mark.slow  # a switch and two engines, on real time

NUMBER = re.compile(rb"simulated-\d+")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
CHAT: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "Hello there"}]}
ASKED: dict[str, tuple[str, str, Any]] = {
    "completion": ("POST", "/v1/completions", question()),
    "stream": ("POST", "/v1/completions", question(stream=True)),
    "chat": ("POST", "/v1/chat/completions", {**CHAT, "max_tokens": 8, "seed": 1}),
    "chat stream with usage": (
        "POST",
        "/v1/chat/completions",
        {
            **CHAT,
            "max_tokens": 8,
            "seed": 1,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        },
    ),
    "chat stream without": (
        "POST",
        "/v1/chat/completions",
        {**CHAT, "max_tokens": 8, "seed": 1, "stream": True},
    ),
    "several choices": ("POST", "/v1/completions", question(n=3, seed=4, stream=True)),
    "logprobs": ("POST", "/v1/completions", question(logprobs=3, stream=True)),
    "tool call": (
        "POST",
        "/v1/chat/completions",
        {**CHAT, "max_tokens": 60, "seed": 2, "tools": TOOLS, "tool_choice": "required"},
    ),
    "tool call streamed": (
        "POST",
        "/v1/chat/completions",
        {
            **CHAT,
            "max_tokens": 60,
            "seed": 2,
            "tools": TOOLS,
            "tool_choice": "required",
            "stream": True,
        },
    ),
    "unknown model": ("POST", "/v1/completions", question(model="none")),
    "bad value": ("POST", "/v1/completions", question(temperature=-1)),
    "too long": ("POST", "/v1/completions", question(max_tokens=10**9)),
    "no object": ("POST", "/v1/completions", [1, 2]),
    "wrong method": ("GET", "/v1/completions", None),
    "models": ("GET", "/v1/models", None),
    "tokens": ("POST", "/tokenize", {"prompt": "one two"}),
}


@pytest.fixture(scope="module", autouse=True)
def on_baseline(front: Switch) -> None:
    """How many tokens a chunk of the speculative engine holds is chance; the baseline's has one."""
    front.set(mode="off")


@pytest.mark.parametrize("name", ASKED)
def test_the_same_bytes_as_from_the_engine_itself(
    name: str, arms: dict[str, Engine], front: Switch, folder: Path
) -> None:
    method, path, said = ASKED[name]

    bare = ask(folder / "baseline.sock", said, method=method, path=path)
    through = ask(front.port, said, method=method, path=path)

    assert through.arm == "baseline"
    assert through.status == bare.status
    assert NUMBER.sub(b"N", through.body) == NUMBER.sub(b"N", bare.body)
    own = {"x-arm", "date", "server", "content-length", "transfer-encoding", "connection"}
    assert _without(through.headers, own) == _without(bare.headers, own)


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"{'a': 1}", b"null", b""])
def test_a_body_that_is_none_is_the_engines_to_refuse(
    body: bytes, front: Switch, arms: dict[str, Engine], folder: Path
) -> None:
    bare = ask(folder / "baseline.sock", body=body)
    through = ask(front.port, body=body)

    assert 400 <= bare.status < 500
    assert (through.status, through.body) == (bare.status, bare.body)


def test_a_caller_that_leaves_is_left_by_the_engine_too(
    front: Switch, arms: dict[str, Engine]
) -> None:
    said = json.dumps(question(max_tokens=2000, stream=True, ignore_eos=True)).encode()
    with socket.create_connection(("127.0.0.1", front.port)) as caller:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(said)}\r\n"
        caller.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + said)
        assert caller.recv(1000).startswith(b"HTTP/1.1 200")
        assert arms["baseline"].running == 1

    wait_for(lambda: arms["baseline"].running == 0)
    wait_for(lambda: front.board.callers == 0)


ODD = [
    b'data: {"choices":[{"index":0,"text":"a',
    b'\\"usage\\" \xc3',
    b'\xa4"}]}\n\n: a comment\n\ndata: {"choices":[{"index":0,"text":"b"}]}\n',
    b'\ndata: {"usage":{"completion_tokens":2},"choices":[{"index":0,"text":""}]}\n\ndata: [DO',
    b"NE]\n\n",
]


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        (ODD, "text/event-stream"),
        ([piece.replace(b"\n", b"\r\n") for piece in ODD], "text/event-stream"),
        ([b"data: no end of event"], "text/event-stream; charset=utf-8"),
        ([b"\x00\xff" * 50, b"", b"rest"], "application/octet-stream"),
        ([], "text/event-stream"),
    ],
)
def test_odd_streams_come_through_unchanged(
    pieces: list[bytes], kind: str, script: Script, before_script: Switch
) -> None:
    script.pieces, script.kind = pieces, kind

    got = ask(before_script.port, question(stream=True))

    assert (got.status, got.headers["content-type"]) == (200, kind)
    assert got.headers["x-own"] == "kept"
    assert got.body == b"".join(pieces)


def test_the_count_that_only_the_switch_asked_for_is_taken_out(
    script: Script, before_script: Switch
) -> None:
    text = b'data: {"choices":[{"index":0,"text":"a"}]}\n\n'
    usage = b'data: {"choices":[],"usage":{"completion_tokens":1,"total_tokens":3}}\n\n'
    script.pieces = [text + usage[:20], usage[20:] + b"data: [DONE]\n\n"]
    script.kind = "text/event-stream"

    without = ask(before_script.port, question(stream=True))
    asked = ask(before_script.port, question(stream=True, stream_options={"include_usage": True}))

    assert without.body == text + b"data: [DONE]\n\n"
    assert asked.body == b"".join(script.pieces)


class Script:
    """A server that answers every POST with its pieces, one TCP segment each."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.kind = "text/plain"
        self._over, self._ready = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        while not self._over.is_set():
            await asyncio.sleep(0.01)
        server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if found := re.search(rb"content-length: (\d+)", head.lower()):
            await reader.readexactly(int(found[1]))
        told = f"Content-Type: {self.kind}\r\nX-Own: kept\r\nConnection: close"
        writer.write(f"HTTP/1.1 200 OK\r\n{told}\r\n\r\n".encode())
        for piece in self.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.close()

    def close(self) -> None:
        self._over.set()
        self._thread.join(10)


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    one = Script()
    yield one
    one.close()


@pytest.fixture(scope="module")
def before_script(script: Script, folder: Path) -> Iterator[Switch]:
    address = {"baseline": script.address, "speculative": script.address}
    with switch(folder / "script", arms=address) as one:
        yield one


def _without(headers: dict[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}
