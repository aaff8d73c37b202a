"""Reads along with a stream of server-sent events, and lets through what its caller asked for.

Pure: bytes in, bytes out; times are handed in.
"""

from __future__ import annotations

from typing import Any

import orjson

LONGEST_EVENT = 2**20
"""A longer one is passed on unread."""
_END = b"\n\n"
_TELLING = (b'"usage"', b'"error"', b"[DONE]")


class StreamWatch:
    """`strip_usage`: the count at the end was asked for by us, and is not the caller's to see.

    What it lets through is byte for byte what came, without that one event.
    """

    def __init__(self, *, strip_usage: bool) -> None:
        self._strip, self._rest, self._blind = strip_usage, b"", False
        self.usage: dict[str, Any] | None = None
        self.metrics: dict[str, Any] | None = None
        """vLLM's per-request metrics, where it is told to send them."""
        self.error: bool = False
        self.done: bool = False
        self.first_s: float | None = None
        self.last_s: float | None = None

    def feed(self, piece: bytes, at_s: float) -> bytes:
        if self.first_s is None:
            self.first_s = at_s
        if self._blind:
            self.last_s = at_s
            return piece
        # By far the most common: whole events that say nothing but text.
        if not self._rest and piece.endswith(_END) and not any(one in piece for one in _TELLING):
            self.last_s = at_s
            return piece
        if b"\r" in piece:  # other line ends than every known server's: not read, not held up
            self._blind = True
            return self.finish() + piece
        whole, end, self._rest = (self._rest + piece).rpartition(_END)
        if len(self._rest) > LONGEST_EVENT:
            self._blind = True
            return whole + end + self.finish()
        if not end:
            return b""
        return b"".join(self._event(one, at_s) for one in whole.split(_END))

    def finish(self) -> bytes:
        """What was held back because its event was not complete."""
        rest, self._rest = self._rest, b""
        return rest

    def _event(self, event: bytes, at_s: float) -> bytes:
        if event.startswith(b"data: {") and any(one in event for one in _TELLING[:2]):
            try:
                said = orjson.loads(event[6:])
            except orjson.JSONDecodeError:
                said = None
            if isinstance(said, dict) and self._told(said) and self._strip:
                return b""
        elif event == b"data: [DONE]":
            self.done = True
            return event + _END
        self.last_s = at_s
        return event + _END

    def _told(self, said: dict[str, Any]) -> bool:
        """Whether the event is the closing count, and nothing else."""
        if said.get("error"):
            self.error = True
        if isinstance(said.get("metrics"), dict):
            self.metrics = said["metrics"]
        if not isinstance(said.get("usage"), dict):
            return False
        self.usage = said["usage"]
        return said.get("choices") == []


def count(said: dict[str, Any] | None, name: str) -> int | None:
    """A whole number of `usage`; None where it is not told."""
    value = (said or {}).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def drafted(metrics: dict[str, Any] | None) -> tuple[int | None, int | None, int | None]:
    """(drafts, accepted tokens, draft tokens) of vLLM's `metrics.speculative_decoding`.

    Undefined: None each, where the engine does not tell.
    Source: `SpeculativeDecodingMetrics` of vLLM 0.32, sent where the engine argument
        `per_request_spec_decode_metrics` asks for it.
    """
    said = (metrics or {}).get("speculative_decoding")
    if not isinstance(said, dict):
        return None, None, None
    return (
        count(said, "num_spec_steps"),
        count(said, "num_accepted_draft_tokens"),
        count(said, "num_draft_tokens"),
    )
