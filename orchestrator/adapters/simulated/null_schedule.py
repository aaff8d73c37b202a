"""What the null server does with a request, written in one line. Pure.

`ttft=0.01;gap=0.002;tokens=2;chunks=8;fault=reset;after=3;framing=split`
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

Fault = Literal["none", "status", "error_event", "reset", "eof", "silence", "garbage", "plain_json"]
Framing = Literal["plain", "split", "comments", "crlf"]

HEADER = "x-null-schedule"


@dataclass(frozen=True, slots=True)
class NullSchedule:
    """A stream of known times.

    Chunk i is due `ttft_s + i·gap_s` after the request's last byte and carries
    `tokens_per_chunk` tokens (the last one what is left). `chunks` None = as many as `max_tokens`
    asks for. `fault` happens after `after` chunks: `status` answers HTTP 500 instead, `silence`
    sends nothing more, ever.
    """

    ttft_s: float = 0.0
    gap_s: float = 0.0
    tokens_per_chunk: int = 1
    chunks: int | None = None
    fault: Fault = "none"
    after: int = 0
    framing: Framing = "plain"

    def due_s(self, chunk: int) -> float:
        """When chunk `chunk` is due, after the request."""
        return self.ttft_s + chunk * self.gap_s

    def sizes(self, max_tokens: int) -> tuple[int, ...]:
        """Tokens of each chunk."""
        if self.chunks is not None:
            return (self.tokens_per_chunk,) * self.chunks
        whole, rest = divmod(max_tokens, self.tokens_per_chunk)
        return (self.tokens_per_chunk,) * whole + ((rest,) if rest else ())

    def write(self) -> str:
        parts = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                parts.append(f"{_SHORT.get(field.name, field.name)}={value}")
        return ";".join(parts)


_SHORT = {"ttft_s": "ttft", "gap_s": "gap", "tokens_per_chunk": "tokens"}
_LONG = {short: long for long, short in _SHORT.items()}


def read_schedule(text: str, default: NullSchedule) -> NullSchedule:
    """The schedule that `text` describes; what it leaves out is as in `default`.

    Raises: ValueError naming the part that is wrong.
    """
    values = {field.name: getattr(default, field.name) for field in fields(default)}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, _, value = part.partition("=")
        name = _LONG.get(name, name)
        if name not in values:
            raise ValueError(f"{part!r}: no such field; there are {', '.join(values)}")
        if name in ("ttft_s", "gap_s"):
            values[name] = float(value)
        elif name in ("tokens_per_chunk", "chunks", "after"):
            values[name] = int(value)
        else:
            allowed = get_args(Fault if name == "fault" else Framing)
            if value not in allowed:
                raise ValueError(f"{part!r}: must be one of {', '.join(allowed)}")
            values[name] = value
    return NullSchedule(**values)
