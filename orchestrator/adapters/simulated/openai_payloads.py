"""OpenAI's request and response bodies, as far as the simulated server speaks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.adapters.simulated.answers import count_tokens

Kind = Literal["chat", "completion"]


class BadRequest(Exception):
    """A request that cannot be answered; becomes HTTP `status` with OpenAI's error body."""

    def __init__(self, message: str, *, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.status, self.param = status, param

    def body(self) -> dict[str, Any]:
        return error_body(str(self), self.status, self.param)


@dataclass(frozen=True)
class Asked:
    """A request, read and checked."""

    kind: Kind
    text: str
    prompt_tokens: int
    max_tokens: int
    temperature: float
    seed: int | None
    ignore_eos: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    return_token_ids: bool
    model: str


def read_request(body: Any, kind: Kind, *, models: Sequence[str], max_model_len: int) -> Asked:
    """Raises: BadRequest naming the parameter, the rule and the value."""
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    model = body.get("model", models[0])
    if model not in models:
        raise BadRequest(
            f"the model {model!r} does not exist; this server has {', '.join(map(repr, models))}",
            param="model",
            status=404,
        )
    text, prompt_tokens = _chat(body) if kind == "chat" else _prompt(body)
    limit = body.get("max_completion_tokens")
    limit = body.get("max_tokens") if limit is None else limit
    if limit is None:
        limit = 16 if kind == "completion" else max(1, max_model_len - prompt_tokens)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise BadRequest(
            f"max_tokens must be a whole number >= 1, got {limit!r}", param="max_tokens"
        )
    temperature = body.get("temperature")
    temperature = 1.0 if temperature is None else temperature
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or temperature < 0:
        raise BadRequest(f"temperature must be >= 0, got {temperature!r}", param="temperature")
    seed = body.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise BadRequest(f"seed must be a whole number, got {seed!r}", param="seed")
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise BadRequest("stream_options must be an object", param="stream_options")
    return Asked(
        kind=kind,
        text=text,
        prompt_tokens=prompt_tokens,
        max_tokens=limit,
        temperature=float(temperature),
        seed=seed,
        ignore_eos=bool(body.get("ignore_eos", False)),
        stream=bool(body.get("stream", False)),
        include_usage=bool(options.get("include_usage", False)),
        continuous_usage=bool(options.get("continuous_usage_stats", False)),
        return_token_ids=bool(body.get("return_token_ids", False)),
        model=model,
    )


def _chat(body: dict[str, Any]) -> tuple[str, int]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list with at least one message", param="messages")
    parts: list[str] = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
        if not isinstance(content, str):
            raise BadRequest("every message needs a text content", param="messages")
        parts.append(content)
    text = "".join(parts)
    return text, count_tokens(text)


def _prompt(body: dict[str, Any]) -> tuple[str, int]:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return prompt, count_tokens(prompt)
    if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
        return " ".join(map(str, prompt)), len(prompt)
    raise BadRequest("prompt must be one text or one list of token ids", param="prompt")


def error_body(message: str, status: int, param: str | None = None) -> dict[str, Any]:
    kind = "BadRequestError" if status < 500 else "InternalServerError"
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def stream_choice(kind: Kind, text: str, finish: str | None, *, first: bool) -> dict[str, Any]:
    """The one choice of a streamed chunk."""
    if kind == "completion":
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    delta = {"role": "assistant", "content": text} if first else {"content": text}
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def whole_choice(kind: Kind, text: str, finish: str) -> dict[str, Any]:
    """The one choice of an answer that was not streamed."""
    if kind == "completion":
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    message = {"role": "assistant", "content": text}
    return {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}


OBJECTS: dict[tuple[Kind, bool], str] = {
    ("chat", True): "chat.completion.chunk",
    ("chat", False): "chat.completion",
    ("completion", True): "text_completion",
    ("completion", False): "text_completion",
}
"""OpenAI's name of the object, by kind and whether it is streamed."""
