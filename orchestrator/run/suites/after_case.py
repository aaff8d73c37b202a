"""How an engine is after a case: alive, answering, its KV cache and memory given back."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.errors import DeploymentError
from orchestrator.ports import Ask
from orchestrator.run.suites.boundary_cases.case import completion
from orchestrator.run.suites.record import Health, Subject
from orchestrator.run.suites.suite import Bench

CANARY_PART = "canary"
"""An ordinary request after every case; its answer is the engine's state of health."""
CANARY_TRIES = 2
SETTLING_LOOKS = 8
"""Canaries at most until the KV cache has come back: each lets the engine take a step, without
which its gauges stand still."""
_WARM_UP = ("Count: one two three one two three one two", "The sun rises in the")


class EngineLost(Exception):
    """An engine died and could not be started again; the message is a note for the record."""


@dataclass
class Care:
    """Looks after the engines between cases."""

    bench: Bench

    def look(self, case: str, subject: Subject) -> bool:
        """Notes how the subject is; starts it again if it is dead, and says whether it lived.

        Raises: EngineLost when it cannot be started.
        """
        bench = self.bench
        if bench.subjects.healthy(subject) and self._answers(case, subject):
            self._settle(case, subject)
            (state,) = bench.look_after(case, [subject])
            return state.healthy
        bench.say(f"{subject}: dead after {case}; starting it again")
        try:
            bench.subjects.restart(subject)
        except DeploymentError as error:
            bench.health.append(Health(case, subject, healthy=False))
            raise EngineLost(
                f"{subject} died in {case} and could not be started again: {error}"
            ) from error
        bench.health.append(Health(case, subject, healthy=False, restarted=True))
        warm_up(bench, subject)
        return False

    def _answers(self, case: str, subject: Subject) -> bool:
        return any(self._canary(case, subject) for _ in range(CANARY_TRIES))

    def _canary(self, case: str, subject: Subject) -> bool:
        ask = _canary(self.bench.subjects.endpoint(subject).model)
        (answer,) = self.bench.put(case, subject, [ask], parts=[CANARY_PART])
        return answer.status == 200

    def _settle(self, case: str, subject: Subject) -> None:
        """Until nothing is in the KV cache; not for ever, since it may never come back."""
        endpoint = self.bench.subjects.endpoint(subject)
        for _ in range(SETTLING_LOOKS):
            counters = self.bench.probe.read(endpoint)
            if counters is None or not (counters.kv_cache_usage or counters.running_requests):
                break
            self._canary(case, subject)


def warm_up(bench: Bench, subject: Subject) -> None:
    """What an engine compiles at its first requests is not a case's doing."""
    model = bench.subjects.endpoint(subject).model
    asks = [completion(model, text, max_tokens=24, ignore_eos=True) for text in _WARM_UP]
    asks.append(completion(model, _WARM_UP[0], temperature=1, seed=1, max_tokens=24))
    bench.asker.ask(bench.subjects.endpoint(subject), asks)


def _canary(model: str) -> Ask:
    return completion(model, "The sky is", max_tokens=4, ignore_eos=True, timeout_s=30.0)
