"""Sends what shows whether speculation changes the output: greedy answers, and many samples.

Which prompts go where, so that no engine answers one from memory:

| prompts | baseline | speculative | baseline again |
|---|---|---|---|
| `alone` | alone | alone | alone |
| `floor` | alone | alone | in a batch |
| `batched` | alone | in a batch | - |

Without a relaunched baseline, the baseline itself is asked `floor` a second time, in a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from orchestrator.plan.block import Prompt
from orchestrator.ports import Ask
from orchestrator.records import ARMS
from orchestrator.run.suites.asking import Attendant
from orchestrator.run.suites.completion import Completion, chat_ask, completion_of
from orchestrator.run.suites.embedding import NOT_AVAILABLE, packed
from orchestrator.run.suites.margins import Parting, read_margins
from orchestrator.run.suites.prompts import PromptDeck, prompt_room
from orchestrator.run.suites.record import Subject, SuiteRecord
from orchestrator.run.suites.suite import Bench

PROBE, GREEDY, BATCHED, AGAIN = "probe", "greedy", "greedy in a batch", "greedy again"
SAMPLED = "sampled at "
SUBJECTS: tuple[Subject, ...] = (*ARMS, "baseline_again")
SEEDS_PER_PROMPT = 1_000_000


@dataclass(frozen=True)
class GreedySize:
    """How many prompts of each use, and how long their answers."""

    alone: int = 24
    floor: int = 12
    batched: int = 24
    tokens: int = 48
    in_flight: int = 8
    """Requests at once in a batch."""


@dataclass(frozen=True)
class SamplingSize:
    """How many continuations; `docs/suites.md` says which defects which size catches."""

    prompts: int = 8
    samples: int = 100
    """Per prompt and engine, each with a seed of its own."""
    tokens: int = 16
    in_flight: int = 8


@dataclass(frozen=True)
class LosslessnessSuite:
    """The sending half; `analyse.suites.losslessness` judges."""

    temperatures: tuple[float, ...] = (0.8,)
    greedy: GreedySize = field(default_factory=GreedySize)
    sampling: SamplingSize = field(default_factory=SamplingSize)
    name: str = "losslessness"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"version": 1, **asdict(self)}

    def run(self, bench: Bench) -> SuiteRecord:
        sending = _Sending(bench, self)
        sending.probe()
        sending.greedy_of_arms()
        for temperature in self.temperatures:
            sending.samples(temperature, ARMS)
        # Last and in one go: there may be room for two engines only.
        again = "baseline_again" in bench.subjects.available
        sending.greedy_of_itself("baseline_again" if again else "baseline")
        if again:
            for temperature in self.temperatures:
                sending.samples(temperature, ("baseline_again",))
        sending.embed()
        attendant = sending.attendant
        return bench.record(
            self.name, complete=attendant.complete, notes=attendant.notes, extra=sending.extra
        )


class _Sending:
    """One run of the suite."""

    def __init__(self, bench: Bench, suite: LosslessnessSuite) -> None:
        self.bench, self.suite = bench, suite
        self.attendant = Attendant(bench)
        room = prompt_room(bench.baseline, max(suite.greedy.tokens, suite.sampling.tokens))
        deck = PromptDeck("losslessness", bench.seed, max_tokens=room)
        size = suite.greedy
        self._first = deck.deal(1)
        self._alone, self._floor = deck.deal(size.alone), deck.deal(size.floor)
        self._batched = deck.deal(size.batched)
        self._sampled = {t: deck.deal(suite.sampling.prompts) for t in suite.temperatures}
        self._fields: dict[str, Any] = {}
        self._baseline: dict[str, Completion] = {}
        self._texts: dict[str, dict[Subject, dict[str, list[str]]]] = {}
        self.extra: dict[str, Any] = {"margins": {}, "drafting": {}, "embeddings": {}}

    def probe(self) -> None:
        """Does the server take the fields that not every server knows?"""
        (prompt,) = self._first
        wanted = {"return_token_ids": True, "cache_salt": f"losslessness-{self.bench.seed}"}
        for arm in ARMS:
            ask = self._ask(arm, prompt, {"max_tokens": 1, "temperature": 0.0, **wanted})
            answers = self.attendant.put(PROBE, arm, [ask], parts=[prompt.id])
            if not answers or answers[0].status != 200:
                self.attendant.notes.append(
                    "the server refuses return_token_ids or cache_salt: texts are compared, "
                    "divergences cannot be triaged"
                )
                return
        self._fields = wanted

    def greedy_of_arms(self) -> None:
        in_flight = self.suite.greedy.in_flight
        together = (*self._alone, *self._floor)
        self.bench.say("greedy answers")
        self._baseline = self._greedy(GREEDY, "baseline", (*together, *self._batched))
        before = self._counters()
        answers = self._greedy(GREEDY, "speculative", together)
        answers |= self._greedy(BATCHED, "speculative", self._batched, in_flight=in_flight)
        self.extra["drafting"][GREEDY] = self._drafted(before)
        self._margins("speculative", answers, "baseline")

    def greedy_of_itself(self, subject: Subject) -> None:
        """The floor: relaunched (where there is such an engine), and in a batch."""
        self.bench.say("greedy answers of the baseline, again")
        if subject == "baseline_again":
            self._margins("relaunched", self._greedy(AGAIN, subject, self._alone), subject)
        batched = self._greedy(BATCHED, subject, self._floor, in_flight=self.suite.greedy.in_flight)
        self._margins("other batch", batched, subject)

    def samples(self, temperature: float, subjects: Sequence[Subject]) -> None:
        size = self.suite.sampling
        case = f"{SAMPLED}{temperature:g}"
        prompts = self._sampled[temperature]
        texts = self._texts.setdefault(case, {})
        before = self._counters() if "speculative" in subjects else None
        # Prompt by prompt through both arms: if time runs out, neither has more than the other.
        for index, prompt in enumerate(prompts):
            self.bench.say(f"{case}, prompt {index + 1} of {len(prompts)}")
            for subject in subjects:
                if subject in self.attendant.given_up:
                    continue
                seed = self.bench.seed + (3 * index + SUBJECTS.index(subject)) * SEEDS_PER_PROMPT
                fields = {"max_tokens": size.tokens, "temperature": temperature, **self._fields}
                asks = [
                    self._ask(subject, prompt, {**fields, "seed": seed + sample})
                    for sample in range(size.samples)
                ]
                answers = self.attendant.put(
                    case, subject, asks, parts=[prompt.id] * len(asks), in_flight=size.in_flight
                )
                whole = [completion_of(answer) for answer in answers]
                found = [one.text for one in whole if one is not None]
                texts.setdefault(subject, {})[prompt.id] = found
        if before is not None:
            self.extra["drafting"][case] = self._drafted(before)

    def embed(self) -> None:
        """Vectors of every sampled continuation, where the optional package is installed."""
        if not self._texts:
            return
        embedder = self.bench.embedder
        if embedder is None:
            self.attendant.notes.append(NOT_AVAILABLE)
            return
        self.bench.say("embeddings of the samples")
        self.extra["embeddings"] = {
            case: {
                subject: {prompt: packed(embedder, found) for prompt, found in prompts.items()}
                for subject, prompts in subjects.items()
            }
            for case, subjects in self._texts.items()
        }

    def _greedy(
        self, case: str, subject: Subject, prompts: Sequence[Prompt], *, in_flight: int = 1
    ) -> dict[str, Completion]:
        fields = {"max_tokens": self.suite.greedy.tokens, "temperature": 0.0, **self._fields}
        found: dict[str, Completion] = {}
        if subject in self.attendant.given_up:
            return found
        # In pieces, so that running out of time loses the rest and not everything.
        piece = max(8, in_flight)
        for start in range(0, len(prompts), piece):
            some = prompts[start : start + piece]
            asks = [self._ask(subject, prompt, fields) for prompt in some]
            answers = self.attendant.put(
                case, subject, asks, parts=[prompt.id for prompt in some], in_flight=in_flight
            )
            for prompt, answer in zip(some, answers, strict=False):
                completion = completion_of(answer)
                if completion is not None:
                    found[prompt.id] = completion
        return found

    def _margins(self, name: str, answers: Mapping[str, Completion], target: Subject) -> None:
        partings = [
            Parting(prompt, mine, answers[prompt])
            for prompt, mine in self._baseline.items()
            if prompt in answers
        ]
        self.extra["margins"][name] = read_margins(self.attendant, name, partings, target)

    def _ask(self, subject: Subject, prompt: Prompt, fields: Mapping[str, Any]) -> Ask:
        return chat_ask(self.bench.model(subject), prompt, fields)

    def _counters(self) -> tuple[float | None, ...]:
        if "speculative" in self.attendant.given_up:
            return (None, None, None)
        seen = self.bench.probe.read(self.bench.subjects.endpoint("speculative"))
        if seen is None:
            return (None, None, None)
        return (seen.drafts, seen.draft_tokens, seen.accepted_tokens)

    def _drafted(self, before: tuple[float | None, ...]) -> dict[str, float | None]:
        """What the speculative engine's counters gained; None where it has none."""
        return {
            name: None if old is None or new is None or new < old else new - old
            for name, old, new in zip(
                ("drafts", "draft_tokens", "accepted_tokens"), before, self._counters(), strict=True
            )
        }
