"""The OpenAI-compatible front end of a simulated engine: from a request's bytes to its answer.

Knows neither sockets nor a clock: `server` puts it behind HTTP, `asker` asks it directly.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from orchestrator.adapters.simulated import openai_payloads as openai
from orchestrator.adapters.simulated.answers import count_tokens, natural_length
from orchestrator.adapters.simulated.configuration import EngineConfiguration
from orchestrator.adapters.simulated.continuation import continuation
from orchestrator.adapters.simulated.defects import Defect
from orchestrator.adapters.simulated.engine import SimulatedEngine
from orchestrator.adapters.simulated.generation import Generation
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.metrics_text import metrics_text
from orchestrator.adapters.simulated.request_settings import RequestSettings, read_settings
from orchestrator.adapters.simulated.sampler import SamplingSettings
from orchestrator.adapters.simulated.toy_language import language_of

CATEGORY_HEADER = "x-prompt-category"
EVENT_STREAM = "text/event-stream; charset=utf-8"
LARGEST_BODY = 64 * 2**20
_NEAR_LIMIT = 16
"""Tokens from the model's length limit within which `ends_early_near_limit` shows."""
_KINDS: dict[str, openai.Kind] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completion",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that needs no generation."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"


class Front:
    """One engine's front end; repeatable for one seed and one order of requests."""

    def __init__(
        self,
        configuration: EngineConfiguration,
        engine: SimulatedEngine,
        *,
        seed: str,
        started_unix_s: float,
    ) -> None:
        self._configuration, self._engine = configuration, engine
        self._started_unix_s = started_unix_s
        self._rng = random.Random(seed)
        self._wrong = frozenset(configuration.faults.defects)
        self._served = 0
        self._running: list[Generation] = []

    def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Reply | Generation:
        """`headers` by lower-case names. A `Generation` must still be submitted to the engine."""
        try:
            return self._handle(method, path.partition("?")[0], headers, body)
        except openai.BadRequest as error:
            return refusal(error)

    def _handle(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Reply | Generation:
        if path == "/reset_prefix_cache" and method == "POST":
            self._engine.flush()
            return Reply(200)
        pages = {"/health": self._health, "/version": _version, "/metrics": self._metrics}
        page = {**pages, "/v1/models": self._models}.get(path)
        kind = _KINDS.get(path)
        if page is None and kind is None and path != "/tokenize":
            raise openai.BadRequest("Not Found", status=404)
        if method != ("POST" if page is None else "GET"):
            raise openai.BadRequest("Method Not Allowed", status=405)
        if page is not None:
            return page()
        if len(body) > LARGEST_BODY:
            raise openai.BadRequest(f"the body exceeds {LARGEST_BODY} bytes", status=413)
        content_type = headers.get("content-type", "application/json").partition(";")[0].strip()
        if content_type.lower() != "application/json":
            raise openai.BadRequest("Only 'application/json' is allowed", status=415)
        try:
            parsed = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise openai.BadRequest(f"the body is not JSON: {error}") from error
        if kind is None:
            return self._tokenize(parsed)
        return self._generate(parsed, kind, headers.get(CATEGORY_HEADER, ""))

    def _health(self) -> Reply:
        return Reply(200)

    def _metrics(self) -> Reply:
        text = metrics_text(self._engine, self._configuration.served_name, self._started_unix_s)
        return Reply(200, text.encode(), "text/plain")

    def _models(self) -> Reply:
        served = (self._configuration.served_name, *self._configuration.adapters)
        models = [
            {
                "id": name,
                "object": "model",
                "created": int(self._started_unix_s),
                "owned_by": "simulated",
                "parent": None if name == served[0] else served[0],
                "max_model_len": self._configuration.limits.max_model_len,
            }
            for name in served
        ]
        return json_reply({"object": "list", "data": models})

    def _tokenize(self, body: Any) -> Reply:
        text = body.get("prompt") if isinstance(body, dict) else None
        if not isinstance(text, str):
            raise openai.BadRequest("prompt must be a text", param="prompt")
        count = count_tokens(text)
        limit = self._configuration.limits.max_model_len
        return json_reply({"count": count, "max_model_len": limit, "tokens": [*range(count)]})

    def _generate(self, body: Any, kind: openai.Kind, category: str) -> Generation:
        if Defect.IGNORES_SYSTEM in self._wrong and isinstance(body, dict):
            body = {**body, **_without_system(body)}
        models = (self._configuration.served_name, *self._configuration.adapters)
        limit = self._configuration.limits.max_model_len
        asked = openai.read_request(body, kind, models=models, max_model_len=limit)
        try:
            settings = read_settings(body, kind, temperature=asked.temperature)
            return self._generation(asked, settings, category)
        except (ValueError, KeyError, TypeError) as error:
            # A constraint or a tool that is put together wrongly.
            raise openai.BadRequest(f"cannot be understood: {error!r}") from error

    def _generation(
        self, asked: openai.Asked, settings: RequestSettings, category: str
    ) -> Generation:
        limit = self._configuration.limits.max_model_len
        if asked.prompt_tokens + asked.max_tokens > limit:
            raise openai.BadRequest(
                f"prompt {asked.prompt_tokens} + max_tokens {asked.max_tokens} exceeds {limit}",
                param="max_tokens",
            )
        settings = self._defective(asked, settings)
        sampling = settings.sampling
        ends_at = asked.max_tokens
        if Defect.ENDS_EARLY_NEAR_LIMIT in self._wrong and self._is_near_limit(asked):
            ends_at = max(1, asked.max_tokens - 3)
        elif not asked.ignore_eos:
            ends_at = natural_length(
                asked.text,
                seed=sampling.seed,
                temperature=sampling.temperature,
                mean=self._configuration.model.natural_output_tokens,
            )
        adapter = "" if asked.model == self._configuration.served_name else asked.model
        adapter = "" if Defect.IGNORES_ADAPTER in self._wrong else adapter
        weights = f"{self._configuration.seed} {adapter}"
        language = language_of(asked.text, weights=weights)
        choices = tuple(
            continuation(
                language,
                settings,
                rng=self._draws(asked, sampling, index),
                max_tokens=asked.max_tokens,
                natural_length=ends_at,
                wrong=self._wrong,
            )
            for index in range(settings.n)
        )
        self._served += 1
        prefix = "chatcmpl" if asked.kind == "chat" else "cmpl"
        job = Job(
            f"{prefix}-simulated-{self._served}",
            asked.prompt_tokens,
            max(len(choice.tokens) for choice in choices),
            category=category,
            temperature=sampling.temperature,
        )
        made = Generation(
            job, asked, settings, choices, self._wrong, self._configuration.faults.garbage_output
        )
        self._running = [other for other in self._running if other.job.end_s is None]
        self._running.append(made)
        return made

    def _defective(self, asked: openai.Asked, settings: RequestSettings) -> RequestSettings:
        """The settings as this engine takes them."""
        wrong = self._wrong
        if settings.sampling.min_p > 0 and Defect.REFUSES_MIN_P in wrong:
            raise openai.BadRequest("min_p is not supported with speculative decoding")
        if settings.prompt_logprobs is not None and Defect.CRASHES_ON_PROMPT_LOGPROBS in wrong:
            self._engine.crash()
        if Defect.IGNORES_TEMPERATURE in wrong:
            settings = replace(settings, sampling=replace(settings.sampling, temperature=0.0))
        if Defect.ONE_CHOICE_ONLY in wrong:
            settings = replace(settings, n=1)
        if Defect.IGNORES_ECHO in wrong:
            settings = replace(settings, echo=False)
        running = [other for other in self._running if other.job.end_s is None]
        if Defect.MIXES_UP_BATCH in wrong and running:
            settings = replace(settings, sampling=running[0].settings.sampling)
        return settings

    def _is_near_limit(self, asked: openai.Asked) -> bool:
        limit = self._configuration.limits.max_model_len
        return asked.prompt_tokens + asked.max_tokens > limit - _NEAR_LIMIT

    def _draws(self, asked: openai.Asked, sampling: SamplingSettings, index: int) -> random.Random:
        seed = sampling.seed
        if sampling.is_greedy:
            return random.Random(asked.text)
        if seed is None or Defect.IGNORES_SEED in self._wrong:
            return random.Random(self._rng.getrandbits(64))
        return random.Random(f"{asked.text} {seed} {index}")


def json_reply(value: Any, status: int = 200) -> Reply:
    return Reply(status, orjson.dumps(value))


def refusal(error: openai.BadRequest) -> Reply:
    return json_reply(error.body(), error.status)


def _version() -> Reply:
    return json_reply({"version": "simulated"})


def _without_system(body: Mapping[str, Any]) -> dict[str, Any]:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return {}
    kept = [m for m in messages if not isinstance(m, dict) or m.get("role") != "system"]
    return {"messages": kept or messages}
