"""Puts many requests to one subject, and says what was lost: to time, or to an engine's death."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.errors import DeploymentError
from orchestrator.ports import Answer, Ask
from orchestrator.run.suites.record import Subject
from orchestrator.run.suites.suite import Bench


@dataclass
class Attendant:
    """Asks through a bench; a dead engine is noted and started again, one that cannot be started
    is given up and no longer asked."""

    bench: Bench
    notes: list[str] = field(default_factory=list)
    given_up: set[Subject] = field(default_factory=set)
    complete: bool = True

    def put(
        self,
        case: str,
        subject: Subject,
        asks: Sequence[Ask],
        *,
        parts: Sequence[str],
        in_flight: int = 1,
        repeat: int = 0,
    ) -> list[Answer]:
        """The answers in order; [] once the subject is given up, or when time has run out."""
        if subject in self.given_up or not asks:
            return []
        if not self.bench.time_left:
            self._note(f"time ran out in {case}: what is missing there is not judged")
            return []
        try:
            answers = self.bench.put(
                case, subject, asks, in_flight=in_flight, repeat=repeat, parts=parts
            )
            if any(answer.error is not None for answer in answers):
                self._look_after(case, subject)
        except DeploymentError as error:
            self.given_up.add(subject)
            self._note(f"{case}: the {subject} engine could not be started: {error.cause}")
            return []
        return answers

    def _look_after(self, case: str, subject: Subject) -> None:
        (state,) = self.bench.look_after(case, [subject])
        if not state.healthy:
            self.notes.append(f"the {subject} engine died in {case} and was started again")

    def _note(self, note: str) -> None:
        self.complete = False
        if note not in self.notes:
            self.notes.append(note)
