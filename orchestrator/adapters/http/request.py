"""From a planned turn to the bytes on the wire. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson

from orchestrator.plan.block import BlockPlan, Message, PlannedRequest, Prompt
from orchestrator.ports import Endpoint

UsageWanted = Literal["continuous", "final", "none"]
_PATHS = {"chat": "/v1/chat/completions", "completion": "/v1/completions"}
_STREAM_OPTIONS: dict[str, dict[str, bool] | None] = {
    "continuous": {"include_usage": True, "continuous_usage_stats": True},
    "final": {"include_usage": True},
    "none": None,
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a TCP connection goes."""

    host: str
    port: int
    tls: bool


def origin_of(base_url: str) -> Origin:
    """Raises: ValueError for anything but http:// or https:// with a host."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"base_url must be http://HOST[:PORT][/PATH] or https://…, got {base_url!r}"
        )
    tls = parts.scheme == "https"
    return Origin(parts.hostname, parts.port or (443 if tls else 80), tls)


class RequestWriter:
    """Writes the requests of one block for one endpoint; the head is made once."""

    def __init__(self, endpoint: Endpoint, block: BlockPlan, usage: UsageWanted) -> None:
        self._block = block
        parts = urlsplit(endpoint.base_url)
        lines = [
            f"POST {parts.path.rstrip('/')}{_PATHS[block.endpoint]} HTTP/1.1",
            f"Host: {parts.netloc.rpartition('@')[2]}",
            "Accept: text/event-stream",
            "Content-Type: application/json",
        ]
        for name, value in endpoint.headers.items():
            if any(mark in name + value for mark in "\r\n\0"):
                raise ValueError(
                    f"header {name!r} of endpoint {endpoint.name!r}: a header must be one line; "
                    "remove the line break (often the end of a key read from a file)"
                )
            lines.append(f"{name}: {value}")
        lines.append("Content-Length: ")
        self._head = "\r\n".join(lines).encode("latin-1")
        self._common = _common_fields(endpoint.model, block, usage)

    def request(self, planned: PlannedRequest, history: Sequence[Message]) -> bytes:
        """One HTTP request, head and body."""
        body = dict(self._common)
        if self._block.endpoint == "chat":
            body["messages"] = [{"role": turn.role, "content": turn.content} for turn in history]
        else:
            body["prompt"] = "\n\n".join(turn.content for turn in history)
        body["max_tokens"] = planned.max_tokens
        if self._block.sampling.seeded and planned.seed is not None:
            body["seed"] = planned.seed
        encoded = orjson.dumps(body)
        return b"%b%d\r\n\r\n%b" % (self._head, len(encoded), encoded)


def opening(prompt: Prompt) -> list[Message]:
    """The history of a conversation before its first turn."""
    return [] if prompt.system is None else [Message("system", prompt.system)]


def turns_to_send(prompt: Prompt, history: str) -> tuple[str, ...]:
    """Which of a prompt's turns a block sends.

    Raises: ValueError when a reference history is asked for and the prompt has too little of it.
    """
    if history == "first_turn":
        return prompt.turns[:1]
    if history == "reference" and len(prompt.reference or ()) < len(prompt.turns) - 1:
        raise ValueError(
            f"prompt {prompt.id!r}: history 'reference' needs a recorded answer to every turn but "
            f"the last, got {len(prompt.reference or ())} for {len(prompt.turns)} turns; "
            "use history: own"
        )
    return prompt.turns


def _common_fields(model: str, block: BlockPlan, usage: UsageWanted) -> dict[str, Any]:
    sampling = block.sampling
    fields: dict[str, Any] = {"model": model, "temperature": sampling.temperature, "stream": True}
    for name in ("top_p", "top_k", "min_p"):
        value = getattr(sampling, name)
        if value is not None:
            fields[name] = value
    if block.fixed_length:
        fields["ignore_eos"] = True
    options = _STREAM_OPTIONS[usage]
    if options is not None:
        fields["stream_options"] = options
    return fields
