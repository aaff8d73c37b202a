"""A server that computes nothing and knows to the microsecond what it sent when.

It speaks the streaming part of the OpenAI protocol. The text of every chunk is the time it was
sent (CLOCK_MONOTONIC in ns, the clock of every process on the host); before the first one stands
the time at which the request was complete: `received:sent sent sent `. So the error of a client is
what it claims minus what the text says (`read_truth`).

    python -m orchestrator.adapters.simulated.null_server --ttft 0.01 --gap 0.002 --tokens 1
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any, cast

import httptools
import orjson

from orchestrator.adapters.http.session import LoopRunner
from orchestrator.adapters.simulated.null_schedule import HEADER, NullSchedule, read_schedule
from orchestrator.adapters.simulated.wheel import Wheel

INPUT_TOKENS = 7
READY = "null server ready on port"
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Truth:
    """What one stream's text says of itself, in seconds on the monotonic clock."""

    received_s: float
    sent_s: tuple[float, ...]


def read_truth(text: str) -> Truth:
    """The times in a stream's text. Raises: ValueError if it is not from this server."""
    received, _, sent = text.partition(":")
    return Truth(int(received) * 1e-9, tuple(int(each) * 1e-9 for each in sent.split()))


class _Stream:
    """One answer in progress."""

    def __init__(
        self, connection: _Connection, schedule: NullSchedule, body: dict[str, Any]
    ) -> None:
        self._connection, self._schedule = connection, schedule
        self._received_ns = time.monotonic_ns()
        self._sizes = schedule.sizes(
            int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        )
        self._sent = self._tokens = 0
        options = body.get("stream_options") or {}
        self._usage_last = bool(options.get("include_usage"))
        self._usage_always = self._usage_last and bool(options.get("continuous_usage_stats"))
        chat = "messages" in body
        kind = "chat.completion.chunk" if chat else "text_completion"
        name = f"{'chatcmpl' if chat else 'cmpl'}-{self._received_ns}"
        self._before = (
            f'{{"id":"{name}","object":"{kind}","created":1700000000,"model":"null","choices":'
        ).encode()
        self._text = b'[{"index":0,"delta":{"content":"' if chat else b'[{"index":0,"text":"'
        self._close = b'"},"logprobs":null,' if chat else b'","logprobs":null,'
        if chat:
            # As vLLM does: the role comes first, in a chunk without a token.
            self._opening = self._event(b'[{"index":0,"delta":{"role":"assistant","content":""}}]')
        else:
            self._opening = b""

    def start(self, wheel: Wheel) -> None:
        wheel.add(self._received_ns * 1e-9 + self._schedule.due_s(0), self.act)

    def act(self, now_s: float) -> float | None:
        """Sends every chunk that is due at `now_s`; returns when the next one is."""
        if self._connection.gone:
            return None
        start_s, schedule = self._received_ns * 1e-9, self._schedule
        out = [_HEAD, self._opening] if self._sent == 0 else []
        while True:
            faulty = schedule.fault != "none" and self._sent == schedule.after
            if faulty or self._sent == len(self._sizes):
                self._connection.write(b"".join(out), schedule.framing == "split")
                self._fault() if faulty else self._finish()
                return None
            if start_s + schedule.due_s(self._sent) > now_s:
                self._connection.write(b"".join(out), schedule.framing == "split")
                return start_s + schedule.due_s(self._sent)
            out.append(self._chunk())

    def _chunk(self) -> bytes:
        last = self._sent == len(self._sizes) - 1
        stamp = b"%d " % time.monotonic_ns()
        if self._sent == 0:
            stamp = b"%d:%b" % (self._received_ns, stamp)
        self._tokens += self._sizes[self._sent]
        self._sent += 1
        reason = b'"finish_reason":"length"}]' if last else b'"finish_reason":null}]'
        event = self._event(b"".join((self._text, stamp, self._close, reason)))
        if self._schedule.framing == "comments":
            return _framed(b": keep-alive\n\n") + event
        return event

    def _event(self, choices: bytes, *, usage: bool | None = None) -> bytes:
        text = b"data: " + self._before + choices
        if self._usage_always if usage is None else usage:
            text += b',"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}' % (
                INPUT_TOKENS, self._tokens, INPUT_TOKENS + self._tokens,
            )  # fmt: skip
        text += b"}\n\n"
        if self._schedule.framing == "crlf":
            text = text.replace(b"\n", b"\r\n")
        return _framed(text)

    def _finish(self) -> None:
        end = self._event(b"[]", usage=True) if self._usage_last else b""
        self._connection.write(end + _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n", False)
        self._connection.stream = None

    def _fault(self) -> None:
        fault = self._schedule.fault
        if fault == "error_event":
            told = (
                b'data: {"error":{"message":"planned","type":"InternalServerError","code":500}}\n\n'
            )
            self._connection.write(
                _framed(told) + _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n", False
            )
            self._connection.stream = None
        elif fault == "garbage":
            self._connection.write(_framed(b"data: {not json\n\n") + b"0\r\n\r\n", False)
            self._connection.stream = None
        elif fault in ("reset", "eof"):
            self._connection.break_off(hard=fault == "reset")
        # silence: the connection stays open, and that is all.


def _framed(text: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(text), text)


class _Connection(asyncio.Protocol):
    def __init__(self, wheel: Wheel, default: NullSchedule) -> None:
        self._wheel, self._default = wheel, default
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._fd = -1
        self._direct = True
        self.stream: _Stream | None = None

    @property
    def gone(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast: uvloop's transports are not registered as asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._fd = transport.get_extra_info("socket").fileno()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.close()

    def on_message_begin(self) -> None:
        self._url, self._body, self._schedule = b"", b"", self._default

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == HEADER.encode():
            self._schedule = read_schedule(value.decode(), self._default)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        path = self._url.decode()
        if self._parser.get_method() == b"GET":
            self._answer_get(path)
            return
        body = orjson.loads(self._body)
        if self._schedule.fault == "status":
            self.answer(500, {"error": {"message": "planned", "type": "InternalServerError"}})
        elif self._schedule.fault == "plain_json" or not body.get("stream"):
            self.answer(200, _unary(body, self._schedule))
        else:
            self.stream = _Stream(self, self._schedule, body)
            self.stream.start(self._wheel)

    def _answer_get(self, path: str) -> None:
        if path.endswith("/v1/models"):
            model = {"id": "null", "object": "model", "created": 0, "owned_by": "null"}
            self.answer(200, {"object": "list", "data": [model]})
        elif path.endswith("/health"):
            self.answer(200, {})
        else:
            self.answer(404, {"error": {"message": f"no {path} here"}})

    def answer(self, status: int, content: dict[str, Any]) -> None:
        body = orjson.dumps(content)
        self.write(
            b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (status, len(body), body),
            False,
        )

    def write(self, data: bytes, split: bool) -> None:
        """Sends now. asyncio's transport would wait for the end of the loop's turn, and the
        stamps of other streams sent in that turn would be early."""
        if self._transport is None or not data:
            return
        if split:
            # Cut inside a UTF-8 text, a chunk's length and an event's end: wherever it falls.
            third = len(data) // 3
            for piece in (data[:third], data[third : 2 * third], data[2 * third :]):
                self.write(piece, False)
            return
        if self._direct and self._transport.get_write_buffer_size() == 0:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                pass  # the socket is full: the transport takes over from here
            except OSError:
                self._transport.abort()
                return
        if data:
            self._transport.write(data)

    def break_off(self, *, hard: bool) -> None:
        if self._transport is None:
            return
        if hard:
            linger = struct.pack("ii", 1, 0)
            self._transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
            self._transport.abort()
        else:
            self._transport.close()


def _unary(body: dict[str, Any], schedule: NullSchedule) -> dict[str, Any]:
    tokens = sum(schedule.sizes(int(body.get("max_tokens") or 16)))
    message = {"role": "assistant", "content": "null"}
    usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": tokens}
    choice = {"index": 0, "message": message, "text": "null", "finish_reason": "length"}
    return {"id": "null", "object": "chat.completion", "choices": [choice], "usage": usage}


async def serve(default: NullSchedule, host: str, port: int) -> None:
    """Serves until it is ended; prints the port it got."""
    loop = asyncio.get_running_loop()
    wheel = Wheel(loop)
    server = await loop.create_server(lambda: _Connection(wheel, default), host, port, backlog=4096)
    print(READY, server.sockets[0].getsockname()[1], flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 = any free port")
    parser.add_argument("--schedule", default="", help="as in the header " + HEADER)
    arguments = parser.parse_args()
    schedule = read_schedule(arguments.schedule, NullSchedule())
    LoopRunner().run(serve(schedule, arguments.host, arguments.port))


if __name__ == "__main__":
    main()
