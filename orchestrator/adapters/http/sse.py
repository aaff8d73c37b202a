"""Server-sent events out of timed bytes. Pure: no clock, no socket.

An event's time is the time at which its last byte arrived, however TCP cut or joined the bytes.
Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One dispatched event: when it was complete, its type ("" unless named), its data.

    A named tuple, since a block has hundreds of thousands.
    """

    at_s: float
    type: str
    data: bytes


def read_events(parts: Iterable[tuple[float, bytes]], *, complete: bool) -> list[Event]:
    """The events in timed pieces of a response body, in order.

    `complete` says that the body ended as HTTP says it should: an event whose closing blank line
    is missing then still counts (some servers leave it out after `[DONE]`); after a broken
    connection it does not, since it may be cut.
    Comments and events without data are dropped, as the standard asks.
    """
    reader = _Reader()
    events = reader.events
    between = True
    for at_s, piece in parts:
        # The common case by far: the piece is exactly one `data:` event and nothing is pending.
        if (
            between
            and piece[:6] == b"data: "
            and piece[-2:] == b"\n\n"
            and piece.find(b"\n") == len(piece) - 2
            and b"\r" not in piece
        ):
            events.append(Event(at_s, "", piece[6:-2]))
        else:
            between = reader.feed(at_s, piece)
    reader.finish(complete)
    return events


class _Reader:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self._rest = b""
        self._type = ""
        self._data: list[bytes] = []
        self._at_s = 0.0
        self._first = True

    def feed(self, at_s: float, piece: bytes) -> bool:
        """Returns whether the piece ended between two events."""
        if not piece:
            return not (self._rest or self._data or self._type)
        self._at_s = at_s
        text = self._rest + piece
        if self._first and not self.events:
            # A byte-order mark may open the stream, and may itself arrive in pieces.
            if len(text) < 3 and _BOM.startswith(text):
                self._rest = text
                return False
            text = text.removeprefix(_BOM)
            self._first = False
        start = 0
        for end in _LINE_END.finditer(text):
            # A carriage return at the very end may be the first half of \r\n.
            if end.group() == b"\r" and end.end() == len(text):
                break
            self._line(text[start : end.start()])
            start = end.end()
        self._rest = text[start:]
        return not (self._rest or self._data or self._type)

    def finish(self, complete: bool) -> None:
        if self._rest.endswith(b"\r"):
            self._line(self._rest[:-1])
        elif self._rest and complete:
            self._line(self._rest)
        self._rest = b""
        if complete:
            self._line(b"")

    def _line(self, line: bytes) -> None:
        if not line:
            if self._data:
                self.events.append(Event(self._at_s, self._type, b"\n".join(self._data)))
            self._data, self._type = [], ""
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value.decode("utf-8", "replace")
        # A comment has an empty name; `id` and `retry` mean nothing to a client that never resumes.
