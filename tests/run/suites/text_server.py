"""Three engines that say English sentences and solve tasks, with faults planted in one of them."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from orchestrator.ports import Answer, Ask, Endpoint
from orchestrator.run.suites.record import Subject
from orchestrator.run.suites.tasks.load import load_tasks
from orchestrator.run.suites.tasks.task import Task
from tests.run.suites.toy_subjects import ToySubjects

NOUNS = "river bridge candle garden winter letter window engine harbour meadow".split()  # noqa: SIM905
TASKS = {task.prompt: task for task in load_tasks()}
GERMAN = "Es ist nicht der Fluss, und die Brücke ist auch nicht von dem Garten, sagt sie."


@dataclass
class TextServer(ToySubjects):
    """Their Asker as well. In a `share` of prompts the speculative engine's answers are spoilt."""

    seed: int = 0
    share: float = 0.4
    text: str | None = None
    """What a spoilt answer says instead."""
    finish: str = "stop"
    """How a spoilt answer ends."""
    longer: bool = False
    numbers_lost: bool = False
    fails: bool = False
    wrong_tasks: float = 0.0
    relaunched_spoilt: bool = False
    seeds: dict[Subject, set[int]] = field(default_factory=dict)

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        self.now_s += 0.01 * len(asks)
        return [self._answer(endpoint.name, json.loads(ask.body)) for ask in asks]  # type: ignore[arg-type]

    def _answer(self, subject: Subject, body: dict[str, object]) -> Answer:
        prompt: str = body["messages"][-1]["content"]  # type: ignore[index]
        seed = int(body.get("seed", 0))  # type: ignore[call-overload]
        if "seed" in body:
            self.seeds.setdefault(subject, set()).add(seed)
        spoilt = subject == "speculative" or (
            subject == "baseline_again" and self.relaunched_spoilt
        )
        chance = zlib.crc32(prompt.encode()) / 2**32
        task = TASKS.get(prompt)
        if task is not None:
            wrong = spoilt and chance < self.wrong_tasks
            return _said(self._solved(task, seed, wrong), "stop")
        text, finish = self._sentences(prompt, seed), "stop"
        if spoilt and chance < self.share:
            if self.fails:
                return Answer(500, '{"error": {"message": "internal"}}')
            finish = self.finish
            if self.text is not None:
                text = self.text
            if self.longer:
                text = f"{text} {self._sentences(prompt, seed + 7)}"
            if self.numbers_lost:
                text = "".join("7" if c.isdigit() else c for c in text).replace("Ana", "Eva")
        return _said(text, finish)

    def _sentences(self, prompt: str, seed: int) -> str:
        fixed = np.random.default_rng(zlib.crc32(prompt.encode()))
        free = np.random.default_rng([self.seed, seed, zlib.crc32(prompt.encode())])
        lines = []
        for _ in range(4):
            a, b, c = fixed.choice(NOUNS, 3, replace=False)
            if seed and free.random() < 0.2:
                a = free.choice(NOUNS)
            number = fixed.integers(10, 99)
            lines.append(f"It is said that Ana saw the {a} of {number} by the {b} and {c}.")
        return " ".join(lines)

    def _solved(self, task: Task, seed: int, wrong: bool) -> str:
        free = np.random.default_rng([self.seed, seed, zlib.crc32(task.id.encode())])
        if wrong or free.random() < (0.05 if seed else 0.0):
            return "I am not sure."
        if task.kind == "arithmetic":
            return f"Answer: {task.answer}"
        if task.kind == "extraction":
            return json.dumps(dict(task.keys or {}))
        return f"```python\n{task.solution}\n```"


def _said(text: str, finish: str) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    return Answer(200, json.dumps({"choices": [{**choice, "finish_reason": finish}]}))


def spoilt(**fields: object) -> TextServer:
    return dataclasses.replace(TextServer(), **fields)  # type: ignore[arg-type]
