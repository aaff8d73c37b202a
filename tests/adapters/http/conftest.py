"""A null server in a process of its own, a server of hand-made bytes, and blocks to send."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.simulated.null_process import NullProcess, running_null_server
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt, Timeouts
from orchestrator.plan.trial import LoadPoint, Sampling
from orchestrator.ports import Endpoint

ROOT = Path(__file__).parents[3]
CLOSED = LoadPoint("closed", concurrency=2)
PATIENT = Timeouts()


@pytest.fixture(scope="session")
def null_server() -> Iterator[NullProcess]:
    with running_null_server() as server:
        yield server


@pytest.fixture(scope="session")
def client() -> Iterator[HttpLoadClient]:
    with HttpLoadClient(workers=0) as client:
        yield client


def prompt(turns: Sequence[str] = ("hello",), **more: object) -> Prompt:
    return Prompt(id="p", category="chat", turns=tuple(turns), **more)  # type: ignore[arg-type]


def block(
    count: int = 1,
    load: LoadPoint = CLOSED,
    *,
    max_tokens: int = 4,
    offset_s: Callable[[int], float | None] = lambda i: None,
    prompts: Prompt | None = None,
    timeouts: Timeouts = PATIENT,
    **more: object,
) -> BlockPlan:
    requests = tuple(
        PlannedRequest(f"r{i}", prompts or prompt(), offset_s(i), max_tokens, seed=100 + i)
        for i in range(count)
    )
    rest = {"sampling": Sampling(), "endpoint": "chat", "fixed_length": True} | more
    rest = {"history": "first_turn"} | rest
    return BlockPlan(requests, load, timeouts=timeouts, **rest)  # type: ignore[arg-type]


@dataclass
class ByteServer:
    """Answers request i with the i-th script, piece by piece, then closes if told so."""

    url: str
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    def endpoint(self, **headers: str) -> Endpoint:
        return Endpoint("bytes", self.url, "m", headers)

    def body(self, index: int = 0) -> bytes:
        return self.requests[index].partition(b"\r\n\r\n")[2]


CLOSE = object()


@contextmanager
def byte_server(
    *scripts: Sequence[object], tls: ssl.SSLContext | None = None
) -> Iterator[ByteServer]:
    """`scripts[i]` answers the i-th request, whatever connection it comes on."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    told = ByteServer(f"{'https' if tls else 'http'}://localhost:{port}")
    left = list(scripts)

    def talk(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            plain = tls.wrap_socket(connection, server_side=True) if tls else connection
            with plain:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while request := read_request(plain):
                    told.requests.append(request)
                    for piece in left.pop(0):
                        if piece is CLOSE:
                            return
                        assert isinstance(piece, bytes)
                        plain.sendall(piece)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                told.connections += 1
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def read_request(connection: socket.socket) -> bytes:
    text = b""
    while b"\r\n\r\n" not in text:
        piece = connection.recv(65536)
        if not piece:
            return b""
        text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def chunked(*events: bytes, end: bool = True) -> bytes:
    """A whole response: head, one HTTP chunk per event, and the last chunk if `end`."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    body = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events)
    return head + body + (b"0\r\n\r\n" if end else b"")
