"""Everything a request may ask for besides its prompt and length: read and checked as vLLM does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.adapters.simulated.constrained import Constraint
from orchestrator.adapters.simulated.openai_payloads import BadRequest, Kind
from orchestrator.adapters.simulated.sampler import SamplingSettings
from orchestrator.adapters.simulated.toy_language import VOCABULARY_SIZE

LARGEST_N = 128


@dataclass(frozen=True)
class RequestSettings:
    """How the answer is to be made, and what is to be told of it."""

    sampling: SamplingSettings
    n: int = 1
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    logprobs: int | None = None
    """How many of the best tokens are told beside the chosen one; None: no log-probabilities."""
    prompt_logprobs: int | None = None
    echo: bool = False
    constraint: Constraint | None = None
    tool: Mapping[str, Any] | None = None
    """The function that must be called."""
    system: bool = False


def read_settings(body: Mapping[str, Any], kind: Kind, *, temperature: float) -> RequestSettings:
    """Raises: BadRequest naming the parameter, the rule and the value."""
    number = _Numbers(body)
    tool = _tool(body)
    return RequestSettings(
        SamplingSettings(
            temperature=temperature,
            top_p=number.between("top_p", 1.0, low=0.0, high=1.0, low_open=True),
            top_k=number.whole("top_k", 0, low=-1),
            min_p=number.between("min_p", 0.0, low=0.0, high=1.0),
            repetition_penalty=number.between(
                "repetition_penalty", 1.0, low=0.0, high=float("inf"), low_open=True
            ),
            presence_penalty=number.between("presence_penalty", 0.0, low=-2.0, high=2.0),
            frequency_penalty=number.between("frequency_penalty", 0.0, low=-2.0, high=2.0),
            seed=body.get("seed"),
            logit_bias=_logit_bias(body.get("logit_bias")),
        ),
        n=number.whole("n", 1, low=1, high=LARGEST_N),
        stop=_stop(body.get("stop")),
        stop_token_ids=_token_ids(body.get("stop_token_ids") or []),
        logprobs=_logprobs(body, kind, number),
        prompt_logprobs=(
            None
            if body.get("prompt_logprobs") is None
            else number.whole("prompt_logprobs", 0, low=0)
        ),
        echo=bool(body.get("echo", False)),
        constraint=_constraint(body) if tool is None else None,
        tool=tool,
        system=any(
            isinstance(message, Mapping) and message.get("role") == "system"
            for message in body.get("messages") or ()
        ),
    )


class _Numbers:
    def __init__(self, body: Mapping[str, Any]) -> None:
        self._body = body

    def between(
        self, name: str, default: float, *, low: float, high: float, low_open: bool = False
    ) -> float:
        value = self._body.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadRequest(f"{name} must be a number, got {value!r}", param=name)
        if not low <= value <= high or (low_open and value == low):
            left = "(" if low_open else "["
            raise BadRequest(f"{name} must be in {left}{low:g}, {high:g}], got {value}", param=name)
        return float(value)

    def whole(self, name: str, default: int, *, low: int, high: int | None = None) -> int:
        value = self._body.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadRequest(f"{name} must be a whole number, got {value!r}", param=name)
        if value < low or (high is not None and value > high):
            most = "" if high is None else f" and <= {high}"
            raise BadRequest(f"{name} must be >= {low}{most}, got {value}", param=name)
        return value


def _logit_bias(given: Any) -> dict[int, float]:
    if given is None:
        return {}
    try:
        biases = {int(token): float(bias) for token, bias in given.items()}
    except (AttributeError, TypeError, ValueError):
        raise BadRequest(
            f"logit_bias must map token ids to numbers, got {given!r}", param="logit_bias"
        ) from None
    for token in biases:
        if not 0 <= token < VOCABULARY_SIZE:
            raise BadRequest(f"token id {token} is out of vocabulary", param="logit_bias")
    return {token: max(-100.0, min(100.0, bias)) for token, bias in biases.items()}


def _stop(given: Any) -> tuple[str, ...]:
    stops = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop for stop in stops):
        raise BadRequest(f"stop must be texts that are not empty, got {given!r}", param="stop")
    return tuple(stops)


def _token_ids(given: Any) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(token) is int for token in given):
        raise BadRequest(f"stop_token_ids must be token ids, got {given!r}", param="stop_token_ids")
    return tuple(given)


def _logprobs(body: Mapping[str, Any], kind: Kind, number: _Numbers) -> int | None:
    if kind == "completion":
        return None if body.get("logprobs") is None else number.whole("logprobs", 0, low=0)
    if not body.get("logprobs"):
        return None
    return number.whole("top_logprobs", 0, low=0, high=20)


def _constraint(body: Mapping[str, Any]) -> Constraint | None:
    wanted = body.get("response_format") or {}
    if not isinstance(wanted, Mapping):
        raise BadRequest("response_format must be an object", param="response_format")
    kind = wanted.get("type", "text")
    if kind == "json_object":
        return Constraint("json_object")
    if kind == "json_schema":
        return Constraint("json", wanted["json_schema"]["schema"])
    if kind != "text":
        raise BadRequest(f"response_format.type {kind!r} is not known", param="response_format")
    guided = body.get("structured_outputs") or {}
    for name in ("json", "regex", "choice"):
        if guided.get(name) is not None:
            return Constraint(name, guided[name])
    return None


def _tool(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choice = body.get("tool_choice")
    if choice in (None, "none", "auto"):
        return None
    tools = [tool["function"] for tool in body.get("tools") or ()]
    if not tools:
        raise BadRequest("tool_choice needs tools", param="tool_choice")
    if choice == "required":
        return dict(tools[0])
    named = [tool for tool in tools if tool["name"] == choice["function"]["name"]]
    if not named:
        raise BadRequest("tool_choice names a function that is not in tools", param="tool_choice")
    return dict(named[0])
