"""Three engines whose model is a Markov chain over twelve words, on virtual time.

The next word depends on the word before it; a prompt's first word on its text. The speculative
engine samples as in Leviathan et al. 2023, algorithm 1, or with one of the planted defects.
"""

from __future__ import annotations

import bisect
import itertools
import json
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orchestrator.ports import Answer, Ask, Endpoint
from orchestrator.records import CounterSnapshot, RequestError
from orchestrator.run.suites.record import Subject
from tests.analyse.toy_sampler import Chains, chains, softmax
from tests.run.suites.toy_subjects import ToySubjects

WORDS = "ba be bi bo bu da de di do du fa fe".split()  # noqa: SIM905
PROMPT_TOKEN = 100


@dataclass
class SamplingServer(ToySubjects):
    """Their Asker as well; `defect` is the speculative engine's."""

    seed: int = 0
    defect: str = "none"
    """A sampler's (`toy_sampler.Defect`), or at temperature 0: "greedy accepts too much",
    "greedy flips ties" (where two words are within 0.25 nats), "loses tokens"."""
    speculation_length: int = 3
    token_ids: bool = True
    drafts: bool = True
    crash_on: int | None = None
    """The speculative engine dies on its n-th request (from 1)."""
    flips_in_batch: bool = False
    """Every engine flips ties when requests share a batch."""
    asked: list[tuple[Subject, str]] = field(default_factory=list)
    restarts: int = 0

    def __post_init__(self) -> None:
        self.model: Chains = chains(np.random.default_rng(self.seed))
        self._counts = [0, 0, 0]
        self._served = 0
        self._dead = False
        self._tables: dict[tuple[str, float], list[list[float]]] = {}

    # Subjects

    def healthy(self, subject: Subject) -> bool:
        return not (subject == "speculative" and self._dead)

    def restart(self, subject: Subject) -> Endpoint:
        self._dead = False
        self.restarts += 1
        return self.endpoint(subject)

    # ServerProbe

    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        drafts, tokens, accepted = self._counts if self.drafts else (0, 0, 0)
        return CounterSnapshot(
            at_unix_s=self.now_s, drafts=drafts, draft_tokens=tokens, accepted_tokens=accepted
        )

    # Asker

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        subject: Subject = endpoint.name  # type: ignore[assignment]
        return [self._answer(subject, ask, in_flight) for ask in asks]

    def _answer(self, subject: Subject, ask: Ask, in_flight: int) -> Answer:
        body = json.loads(ask.body)
        if subject == "speculative":
            self._served += 1
            if self._served == self.crash_on:
                self._dead = True
            if self._dead:
                return Answer(None, "", error=RequestError.RESET, error_text="connection reset")
        if not self.token_ids and "return_token_ids" in body:
            return Answer(400, '{"error": {"message": "unknown field return_token_ids"}}')
        if "messages" in body:
            text = body["messages"][-1]["content"]
            self.asked.append((subject, text))
            prompt = [PROMPT_TOKEN, zlib.crc32(text.encode()) % 12]
        else:
            prompt = body["prompt"]
        tokens = self._tokens(subject, body, prompt[-1] % 12, in_flight)
        self.now_s += 0.01 * len(tokens)
        return Answer(200, json.dumps(self._completion(body, prompt, tokens)), seconds=0.01)

    def _completion(
        self, body: dict[str, Any], prompt: list[int], tokens: list[int]
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        text = " ".join(WORDS[token] for token in tokens)
        if "messages" in body:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        answer: dict[str, Any] = {"choices": [choice]}
        if body.get("return_token_ids"):
            choice["token_ids"] = tokens
            answer["prompt_token_ids"] = prompt
        if body.get("logprobs"):
            logprobs = np.log(softmax(self.model.target)[prompt[-1] % 12])
            best = {f"token_id:{t}": float(logprobs[t]) for t in np.argsort(-logprobs)}
            choice["logprobs"] = {"top_logprobs": [best]}
        return answer

    # The model

    def _tokens(
        self, subject: Subject, body: dict[str, Any], last: int, in_flight: int
    ) -> list[int]:
        count, temperature = body["max_tokens"], body["temperature"]
        speculative = subject == "speculative"
        if temperature == 0:
            flips = self.flips_in_batch and in_flight > 1
            return self._greedy(last, count, flips, self.defect if speculative else "none")
        rng = random.Random(body["seed"] * 7919 + self.seed)
        if speculative:
            return self._speculative(last, count, temperature, rng)
        return self._plain(last, count, temperature, rng)

    def _greedy(self, last: int, count: int, flips: bool, defect: str) -> list[int]:
        found: list[int] = []
        for position in range(count):
            row = self.model.target[last]
            order = np.argsort(-row)
            token = int(order[0])
            near = row[order[0]] - row[order[1]] < 0.25
            if near and (flips or defect == "greedy flips ties"):
                token = int(order[1])
            if defect == "greedy accepts too much":
                drafted = int(self.model.draft[last].argmax())
                if row[drafted] > row[token] - 1.5:
                    token = drafted
            if defect == "loses tokens" and position % 5 == 4:
                last = token
                continue
            self._count(1, 1)
            found.append(token)
            last = token
        return found

    def _plain(self, last: int, count: int, temperature: float, rng: random.Random) -> list[int]:
        table = self._cumulative("target", temperature)
        found = []
        for _ in range(count):
            last = _draw(table[last], rng)
            found.append(last)
        return found

    def _speculative(
        self, last: int, count: int, temperature: float, rng: random.Random
    ) -> list[int]:
        p, q = self.model.at(temperature)
        if self.defect == "ignores temperature":
            p = softmax(self.model.target)
        draft = self._cumulative("draft", temperature)
        at = 1.0 if self.defect == "ignores temperature" else temperature
        target = self._cumulative("target", at)
        bonus = draft if self.defect == "biased bonus token" else target
        residual = target if self.defect == "residual not taken" else self._residual(p, q, at)
        excess = 2.0 if self.defect == "accepts too much" else 1.0
        found: list[int] = []
        while len(found) < count:
            for _ in range(self.speculation_length):
                proposed = _draw(draft[last], rng)
                accepted = rng.random() < excess * p[last, proposed] / q[last, proposed]
                last = proposed if accepted else _draw(residual[last], rng)
                found.append(last)
                self._count(1, int(accepted))
                if not accepted:
                    break
            else:
                last = _draw(bonus[last], rng)
                found.append(last)
        return found[:count]

    def _cumulative(self, which: str, temperature: float) -> list[list[float]]:
        key = (which, temperature)
        if key not in self._tables:
            rows = softmax(getattr(self.model, which) / temperature)
            self._tables[key] = rows.cumsum(axis=1).tolist()
        return self._tables[key]

    def _residual(self, p: Any, q: Any, at: float) -> list[list[float]]:
        key = ("residual", at)
        if key not in self._tables:
            rows = np.maximum(p - q, 1e-300)
            self._tables[key] = (rows / rows.sum(axis=1, keepdims=True)).cumsum(axis=1).tolist()
        return self._tables[key]

    def _count(self, drafted: int, accepted: int) -> None:
        self._counts[0] += 1
        self._counts[1] += drafted
        self._counts[2] += accepted


def _draw(cumulative: list[float], rng: random.Random) -> int:
    return min(bisect.bisect_left(cumulative, rng.random()), len(cumulative) - 1)


def asked_more_than_once(server: SamplingServer) -> set[str]:
    """Prompts that one engine was asked twice in a row of different uses."""
    runs = [key for key, _ in itertools.groupby(server.asked)]
    return {text for subject, text in runs if runs.count((subject, text)) > 1}
