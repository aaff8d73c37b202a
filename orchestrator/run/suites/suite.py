"""What every suite is given, and what it must do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.ports import Answer, Ask, Asker, Endpoint, ServerProbe
from orchestrator.run.suites.record import Asked, Health, Subject, SuiteRecord


class Subjects(Protocol):
    """The engines under test, as a suite sees them. Outlives a crash of any of them."""

    @property
    def available(self) -> tuple[Subject, ...]:
        """`baseline` and `speculative` always; `baseline_again` where a third engine is there."""

    def endpoint(self, subject: Subject) -> Endpoint: ...

    def healthy(self, subject: Subject) -> bool: ...

    def restart(self, subject: Subject) -> Endpoint:
        """Start it anew (also when it is alive). Raises: DeploymentError."""

    def rss_bytes(self, subject: Subject) -> float | None: ...


@dataclass
class Bench:
    """A suite's workbench: asks, notes what came, looks after health."""

    pair_key: str
    baseline: dict[str, object]
    speculative: dict[str, object]
    subjects: Subjects
    asker: Asker
    probe: ServerProbe
    now: Callable[[], float]
    """Monotonic seconds; virtual with a simulated engine."""
    deadline_s: float
    """On `now`'s clock: no case is begun after it."""
    say: Callable[[str], None] = lambda text: None
    """Progress, one line."""
    seed: int = 0
    asked: list[Asked] = field(default_factory=list)
    health: list[Health] = field(default_factory=list)

    def put(
        self,
        case: str,
        subject: Subject,
        asks: Sequence[Ask],
        *,
        in_flight: int = 1,
        repeat: int = 0,
        parts: Sequence[str] = (),
    ) -> list[Answer]:
        """Put requests to one subject; note the answers, in order. Never raises for a request."""
        answers = self.asker.ask(self.subjects.endpoint(subject), asks, in_flight=in_flight)
        names = parts or ("",) * len(asks)
        self.asked += [
            Asked(case, subject, ask, answer, repeat, part)
            for ask, answer, part in zip(asks, answers, names, strict=True)
        ]
        return answers

    @property
    def time_left(self) -> bool:
        return self.now() < self.deadline_s


class Suite(Protocol):
    """The sending half of a suite."""

    @property
    def name(self) -> str: ...

    def run(self, bench: Bench) -> SuiteRecord:
        """Send everything; a case that kills an engine is recorded and the rest goes on."""
