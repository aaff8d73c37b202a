"""Isolation: does what one tenant asks change what another one sees of the engine?

Tenant A puts a secret prompt. Then tenant B puts the same prompt, and one that nobody has put
before, in random order. Everything else is equal, so a difference between B's two observations
(time to the first token, pace, acceptance) tells B what A asked. Once without `cache_salt`, and
once with a salt of each tenant's own.

What it shows is judged by `analyse.suites.isolation`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.errors import DeploymentError
from orchestrator.ports import Ask
from orchestrator.records import ARMS, Arm, CounterSnapshot
from orchestrator.run.suites.after_case import warm_up
from orchestrator.run.suites.openai import completion
from orchestrator.run.suites.record import SuiteRecord
from orchestrator.run.suites.secret_notes import secret_note
from orchestrator.run.suites.suite import Bench

VERSION = 1
SALTED, UNSALTED = "own salts", "no salt"
TOUCHED, FRESH, TENANT_A = "touched", "fresh", "tenant A"


@dataclass(frozen=True)
class IsolationSuite:
    """Pairs of observations, both arms in turn within a pair, so that a drift hits all alike."""

    pairs: int = 20
    secret_words: int = 150
    answer_tokens: int = 24
    name: str = field(default="isolation", init=False)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "version": VERSION,
            "pairs": self.pairs,
            "secret_words": self.secret_words,
            "answer_tokens": self.answer_tokens,
        }

    def run(self, bench: Bench) -> SuiteRecord:
        rng = random.Random(f"isolation {bench.seed}")
        drafted: list[dict[str, Any]] = []
        notes: list[str] = []
        complete = True
        try:
            for arm in ARMS:
                warm_up(bench, arm)
            for pair in range(self.pairs):
                if not bench.time_left:
                    complete = False
                    notes.append(f"time was up after {pair} of {self.pairs} pairs")
                    break
                bench.say(f"isolation: pair {pair + 1} of {self.pairs}")
                for condition in (UNSALTED, SALTED):
                    for arm in ARMS if pair % 2 == 0 else ARMS[::-1]:
                        drafted += self._pair(bench, arm, condition, pair, rng)
                bench.look_after(f"pair {pair}")
        except DeploymentError as error:
            complete = False
            notes.append(f"an engine could not be started again: {error}")
        extra = {"drafted": drafted, "seed": bench.seed}
        return bench.record(self.name, complete=complete, notes=notes, extra=extra)

    def _pair(
        self, bench: Bench, arm: Arm, condition: str, pair: int, rng: random.Random
    ) -> list[dict[str, Any]]:
        """Tenant A's request and B's two; what the engine's counters say of B's."""
        touched, fresh = (secret_note(rng, self.secret_words) for _ in range(2))
        salts = (f"{rng.getrandbits(256):064x}", f"{rng.getrandbits(256):064x}")
        mine, its = salts if condition == SALTED else (None, None)
        bench.put(
            condition, arm, [self._ask(bench, arm, touched, mine)], repeat=pair, parts=[TENANT_A]
        )
        order = [(TOUCHED, touched), (FRESH, fresh)]
        rng.shuffle(order)
        found = []
        for part, prompt in order:
            ask = self._ask(bench, arm, prompt, its)
            before = bench.probe.read(bench.subjects.endpoint(arm))
            bench.put(condition, arm, [ask], repeat=pair, parts=[part])
            after = bench.probe.read(bench.subjects.endpoint(arm))
            if (counted := _accepted(before, after)) is not None:
                found.append(
                    {"condition": condition, "arm": arm, "pair": pair, "part": part}
                    | {"accepted_tokens": counted}
                )
        return found

    def _ask(self, bench: Bench, arm: Arm, prompt: str, salt: str | None) -> Ask:
        fields: dict[str, Any] = {} if salt is None else {"cache_salt": salt}
        return completion(
            bench.model(arm),
            prompt,
            max_tokens=self.answer_tokens,
            temperature=0,
            ignore_eos=True,
            stream=True,
            stream_options={"include_usage": True},
            **fields,
        )


def _accepted(before: CounterSnapshot | None, after: CounterSnapshot | None) -> float | None:
    """Drafted tokens accepted in between. Undefined (None) where they are not counted, or the
    engine was started anew."""
    if before is None or after is None or before.replica_ids != after.replica_ids:
        return None
    if before.accepted_tokens is None or after.accepted_tokens is None:
        return None
    return after.accepted_tokens - before.accepted_tokens
