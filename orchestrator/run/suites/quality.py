"""Sends what shows whether answers are equally good: open prompts, and tasks with known answers.

At temperature 0 once, above it several times, with seeds that no two engines share: the same seed
would make the relaunched baseline repeat itself and the speculative arm not, which is no fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from orchestrator.plan.block import Prompt
from orchestrator.ports import Answer, Ask
from orchestrator.records import ARMS
from orchestrator.run.suites.asking import Attendant
from orchestrator.run.suites.completion import chat_ask, completion_of
from orchestrator.run.suites.embedding import NOT_AVAILABLE, similarities
from orchestrator.run.suites.prompts import PromptDeck, prompt_room
from orchestrator.run.suites.record import Subject, SuiteRecord
from orchestrator.run.suites.suite import Bench
from orchestrator.run.suites.tasks.check import check
from orchestrator.run.suites.tasks.load import load_tasks
from orchestrator.run.suites.tasks.task import Task, TaskKind

ANSWERS, TASKS = "answers at ", "tasks at "
TASK_TOKENS: Mapping[TaskKind, int] = {"arithmetic": 64, "extraction": 96, "code": 160}
SUBJECTS: tuple[Subject, ...] = (*ARMS, "baseline_again")
SEEDS_PER_SUBJECT = 1_000_000


@dataclass(frozen=True)
class QualitySize:
    """How much is asked; below about 60 prompts or tasks, equality within 5 % cannot be shown."""

    prompts: int = 60
    tokens: int = 96
    repeats: int = 3
    """Above temperature 0; an odd number has a majority."""
    tasks: int | None = None
    """None: all of them."""
    in_flight: int = 8


@dataclass(frozen=True)
class QualitySuite:
    """The sending half; `analyse.suites.quality` judges."""

    temperatures: tuple[float, ...] = (0.0, 0.8)
    size: QualitySize = field(default_factory=QualitySize)
    name: str = "quality"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"version": 1, **asdict(self)}

    def run(self, bench: Bench) -> SuiteRecord:
        sending = _Sending(bench, self)
        sending.ask_all(ARMS)
        if "baseline_again" in bench.subjects.available:
            # In one go: there may be room for two engines only.
            sending.ask_all(("baseline_again",))
        sending.check_tasks()
        sending.embed()
        attendant = sending.attendant
        return bench.record(
            self.name, complete=attendant.complete, notes=attendant.notes, extra=sending.extra
        )


class _Sending:
    def __init__(self, bench: Bench, suite: QualitySuite) -> None:
        self.bench, self.suite, self.size = bench, suite, suite.size
        self.attendant = Attendant(bench)
        room = prompt_room(bench.baseline, suite.size.tokens)
        deck = PromptDeck("quality", bench.seed, max_tokens=room)
        self._prompts = {t: deck.deal(suite.size.prompts) for t in suite.temperatures}
        self._tasks = _mixed(load_tasks(), suite.size.tasks)
        self.extra: dict[str, Any] = {"checked": {}, "similarity": {}}

    def ask_all(self, subjects: Sequence[Subject]) -> None:
        for temperature in self.suite.temperatures:
            for repeat in range(1 if temperature == 0 else self.size.repeats):
                for subject in subjects:
                    self.bench.say(f"{subject} at temperature {temperature:g}, {repeat + 1}")
                    prompts = self._prompts[temperature]
                    self._ask(f"{ANSWERS}{temperature:g}", subject, temperature, repeat, prompts,
                              [self.size.tokens] * len(prompts))  # fmt: skip
                    self._ask(f"{TASKS}{temperature:g}", subject, temperature, repeat,
                              [Prompt(task.id, task.kind, (task.prompt,)) for task in self._tasks],
                              [TASK_TOKENS[task.kind] for task in self._tasks])  # fmt: skip

    def _ask(
        self,
        case: str,
        subject: Subject,
        temperature: float,
        repeat: int,
        prompts: Sequence[Prompt],
        tokens: Sequence[int],
    ) -> None:
        if subject in self.attendant.given_up:
            return
        seed = self.bench.seed + SUBJECTS.index(subject) * SEEDS_PER_SUBJECT + 1000 * repeat
        model = self.bench.model(subject)
        asks: list[Ask] = []
        for index, (prompt, limit) in enumerate(zip(prompts, tokens, strict=True)):
            fields: dict[str, Any] = {"max_tokens": limit, "temperature": temperature}
            if temperature > 0:
                fields["seed"] = seed + index
            asks.append(chat_ask(model, prompt, fields))
        piece = 2 * self.size.in_flight
        for start in range(0, len(asks), piece):
            self.attendant.put(
                case,
                subject,
                asks[start : start + piece],
                parts=[prompt.id for prompt in prompts[start : start + piece]],
                in_flight=self.size.in_flight,
                repeat=repeat,
            )

    def check_tasks(self) -> None:
        """Runs what must be run (code, in the sandbox) now: a record is judged without doing so."""
        self.bench.say("checking the tasks' answers")
        tasks = {task.id: task for task in self._tasks}
        known: dict[tuple[str, str], bool | None] = {}
        found: dict[str, dict[str, dict[str, list[bool | None]]]] = {}
        for one in self.bench.asked:
            if not one.case.startswith(TASKS):
                continue
            text = _text(one.answer)
            if text is None:
                passed: bool | None = None
            else:
                if (one.part, text) not in known:
                    known[one.part, text] = check(tasks[one.part], text).passed
                passed = known[one.part, text]
            by_task = found.setdefault(one.case, {}).setdefault(one.subject, {})
            by_task.setdefault(one.part, []).append(passed)
        self.extra["checked"] = found

    def embed(self) -> None:
        """Similarity of each subject's answers to the baseline's, prompt by prompt."""
        embedder = self.bench.embedder
        if embedder is None:
            self.attendant.notes.append(NOT_AVAILABLE)
            return
        self.bench.say("embeddings of the answers")
        texts: dict[str, dict[Subject, dict[str, list[str]]]] = {}
        for one in self.bench.asked:
            text = _text(one.answer)
            if one.case.startswith(ANSWERS) and text is not None:
                by_prompt = texts.setdefault(one.case, {}).setdefault(one.subject, {})
                by_prompt.setdefault(one.part, []).append(text)
        self.extra["similarity"] = {
            case: {
                subject: similarities(embedder, by.get("baseline", {}), by.get(subject, {}))
                for subject in ("speculative", "baseline_again")
                if subject in by
            }
            for case, by in texts.items()
        }


def _mixed(tasks: Sequence[Task], count: int | None) -> tuple[Task, ...]:
    """So many tasks, of every kind in proportion; all of them for None."""
    if count is None or count >= len(tasks):
        return tuple(tasks)
    return tuple(tasks[int(i * len(tasks) / count)] for i in range(count))


def _text(answer: Answer) -> str | None:
    completion = completion_of(answer)
    return None if completion is None else completion.text
