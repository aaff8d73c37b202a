"""Two tiny servers on virtual time, sound but for the defects that a test plants."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orchestrator.adapters.simulated import openai_payloads as openai
from orchestrator.adapters.simulated.answers import answer_to, count_tokens
from orchestrator.errors import DeploymentError
from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.ports import Answer, Ask, Endpoint
from orchestrator.records import CounterSnapshot, RequestError
from orchestrator.run.suites.record import Subject
from orchestrator.run.suites.suite import Bench

LIMIT = 512
ENGINE = {"max_model_len": LIMIT, "max_num_seqs": 8, "simulated": {}}
BASELINE = Deployment("tiny", ENGINE)
SPECULATIVE = Deployment("tiny", ENGINE, Speculation("ngram", 4))

Override = Callable[["Arm", Ask, dict[str, Any]], Answer | None]
"""What a defect makes of a request (its parsed body is given); None: nothing."""


@dataclass
class Arm:
    """One server's state."""

    name: Subject
    alive: bool = True
    starts: int = 1
    kv: float = 0.0
    rss: float = 1e9
    accepted: float = 0.0
    drafted: float = 0.0
    asked: int = 0
    seen: set[str] = field(default_factory=set)
    """Prompts that were here before, by what a cache would know them by."""


@dataclass
class TinyWorld:
    """Asker, Subjects and ServerProbe in one; `defects` by arm."""

    seed: int = 0
    defects: dict[Subject, Override] = field(default_factory=dict)
    cannot_restart: bool = False
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.arms: dict[Subject, Arm] = {
            "baseline": Arm("baseline"),
            "speculative": Arm("speculative"),
        }

    def bench(self, *, seconds: float = 1e9) -> Bench:
        return Bench(
            pair_key="pair",
            baseline=BASELINE.as_dict(),
            speculative=SPECULATIVE.as_dict(),
            subjects=self,
            asker=self,
            probe=self,
            now=lambda: self.now_s,
            deadline_s=seconds,
            seed=self.seed,
        )

    @property
    def available(self) -> tuple[Subject, ...]:
        return tuple(self.arms)

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def endpoint(self, subject: Subject) -> Endpoint:
        return Endpoint(str(subject), f"simulated://{subject}", "tiny", simulated=True)

    def healthy(self, subject: Subject) -> bool:
        return self.arms[subject].alive

    def restart(self, subject: Subject) -> Endpoint:
        if self.cannot_restart:
            raise DeploymentError("out_of_memory", "no room", "")
        self.arms[subject] = Arm(subject, starts=self.arms[subject].starts + 1)
        return self.endpoint(subject)

    def rss_bytes(self, subject: Subject) -> float | None:
        return self.arms[subject].rss

    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        arm = self.arms[endpoint.name]  # type: ignore[index]
        speculates = arm.name == "speculative"
        return CounterSnapshot(
            at_unix_s=self.now_s,
            kv_cache_usage=arm.kv,
            running_requests=0.0,
            accepted_tokens=arm.accepted if speculates else None,
            draft_tokens=arm.drafted if speculates else None,
            drafts=arm.drafted / 4 if speculates else None,
        )

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        return [self._one(self.arms[endpoint.name], ask) for ask in asks]  # type: ignore[index]

    def _one(self, arm: Arm, ask: Ask) -> Answer:
        if not arm.alive:
            return Answer(None, "", error=RequestError.CONNECT, error_text="refused")
        arm.asked += 1
        body = parsed(ask)
        defect = self.defects.get(arm.name)
        answer = defect(arm, ask, body) if defect is not None else None
        if answer is None:
            answer = sound_answer(ask, body, float(self.rng.lognormal(-3, 0.3)))
        if answer.status == 200 and arm.name == "speculative":
            arm.drafted += 4
            arm.accepted += float(self.rng.integers(0, 3))
        self.now_s += answer.seconds
        return answer


def parsed(ask: Ask) -> dict[str, Any]:
    try:
        body = json.loads(ask.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def sound_answer(ask: Ask, body: dict[str, Any], seconds: float = 0.05) -> Answer:
    """What a sound server says."""
    if ask.path == "/v1/models":
        return Answer(200, json.dumps({"data": [{"id": "tiny"}]}), seconds=seconds)
    if ask.method != "POST":
        return refusal(405, "Method Not Allowed", seconds)
    kind: openai.Kind = "chat" if "chat" in ask.path else "completion"
    try:
        if not body:
            raise openai.BadRequest("the body is not a JSON object")
        asked = openai.read_request(body, kind, model="tiny", max_model_len=LIMIT)
        if asked.prompt_tokens + asked.max_tokens > LIMIT:
            raise openai.BadRequest(f"at most {LIMIT} tokens, got {asked.prompt_tokens}")
    except (openai.BadRequest, TypeError) as error:
        return refusal(getattr(error, "status", 400), str(error), seconds)
    if ask.abandon_after_events is not None or ask.abandon_after_s is not None:
        return Answer(200, "", seconds=seconds, abandoned=True)
    said = answer_to(asked.text, seed=asked.seed, temperature=asked.temperature, garbage=False)
    text = said.text(0, asked.max_tokens)
    used = openai.usage(asked.prompt_tokens, asked.max_tokens)
    if not asked.stream:
        choice = openai.whole_choice(kind, text, "length")
        whole = {"id": "x", "choices": [choice], "usage": used}
        return Answer(200, json.dumps(whole), content_type="application/json", seconds=seconds)
    choice = openai.stream_choice(kind, text, "length", first=True)
    events = (
        (seconds / 2, json.dumps({"choices": [choice]})),
        (seconds * 0.9, json.dumps({"choices": [], "usage": used})),
        (seconds, "[DONE]"),
    )
    return Answer(200, "", events=events, content_type="text/event-stream", seconds=seconds)


def refusal(status: int, message: str, seconds: float = 0.01) -> Answer:
    return Answer(status, json.dumps({"error": {"message": message}}), seconds=seconds)


def tokens_of(body: dict[str, Any]) -> int:
    prompt = body.get("prompt")
    return len(prompt) if isinstance(prompt, list) else count_tokens(str(prompt))
