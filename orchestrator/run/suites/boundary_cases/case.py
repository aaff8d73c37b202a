"""One case of the boundary suite, and how its requests are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.ports import Ask

Must = Literal["answer", "refuse", "either"]
"""What a sound server does. `either`: both are sound, a server error, silence or death is not."""

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"
SHORT_TOKENS = 8
TIMEOUT_S = 30.0
LONG_TIMEOUT_S = 90.0

WriteAsks = Callable[[str], tuple[Ask, ...]]
"""From the name under which a server knows its model to the requests."""


@dataclass(frozen=True)
class BoundaryCase:
    """Requests that lie on an edge, and what a sound server does with them."""

    name: str
    must: Must
    asks: WriteAsks
    """Written when the case is run: some are megabytes long."""
    parts: tuple[str, ...] = ()
    in_flight: int = 1
    rounds: int = 1
    """The requests again so many times; the KV cache is looked at after the last."""
    timed: bool = True
    """False: how long it takes is the client's doing, or the queue's."""


def completion(model: str, prompt: Any, *, timeout_s: float = TIMEOUT_S, **fields: Any) -> Ask:
    """A greedy, short, whole completion unless `fields` say otherwise; None drops a field."""
    return _post(COMPLETIONS, timeout_s, {"model": model, "prompt": prompt, **_short(fields)})


def chat(model: str, content: Any, *, timeout_s: float = TIMEOUT_S, **fields: Any) -> Ask:
    """The same as one user message of a chat."""
    messages = [{"role": "user", "content": content}]
    return _post(CHAT, timeout_s, {"model": model, "messages": messages, **_short(fields)})


def raw(body: bytes, *, path: str = COMPLETIONS, timeout_s: float = TIMEOUT_S, **how: Any) -> Ask:
    """A request given by its bytes."""
    return Ask(path=path, body=body, timeout_s=timeout_s, **how)


def one(name: str, must: Must, write: Callable[[str], Ask], **how: Any) -> BoundaryCase:
    """A case of a single request."""
    return BoundaryCase(name, must, lambda model: (write(model),), **how)


def _short(fields: dict[str, Any]) -> dict[str, Any]:
    whole = {"max_tokens": SHORT_TOKENS, "temperature": 0, **fields}
    return {name: value for name, value in whole.items() if value is not None}


def _post(path: str, timeout_s: float, body: dict[str, Any]) -> Ask:
    # ASCII only: lone surrogates survive as escapes, NaN and infinity as Python writes them.
    return Ask(path=path, body=json.dumps(body).encode("ascii"), timeout_s=timeout_s)
