"""What every suite is given, and what it must do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.ports import Answer, Ask, Asker, Embedder, Endpoint, ServerProbe
from orchestrator.records import ARMS
from orchestrator.run.soak.tools import SoakKeeper, SoakTools
from orchestrator.run.suites.record import Asked, Health, Subject, SuiteRecord


class Subjects(Protocol):
    """The engines under test, as a suite sees them. Outlives a crash of any of them.

    To go from the two arms to `baseline_again`, or back, may start an engine (there may be room
    for two only): put everything that is meant for it in one go.
    """

    @property
    def available(self) -> tuple[Subject, ...]:
        """`baseline` and `speculative` always; `baseline_again` where a third engine can be had."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about them: that a server cannot be restarted, is only asked again, …"""

    def endpoint(self, subject: Subject) -> Endpoint:
        """Where it answers now. Raises: DeploymentError when it cannot be started."""

    def healthy(self, subject: Subject) -> bool: ...

    def restart(self, subject: Subject) -> Endpoint:
        """Start it anew (also when it is alive). Raises: DeploymentError."""

    def rss_bytes(self, subject: Subject) -> float | None: ...

    def log(self, subject: Subject) -> str | None:
        """The end of the engine's log; None where it cannot be read from here."""


@dataclass
class Bench:
    """A suite's workbench: asks, notes what came, looks after health."""

    pair_key: str
    baseline: Mapping[str, Any]
    """`Deployment.as_dict()`."""
    speculative: Mapping[str, Any]
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
    started_unix_s: float = 0.0
    embedder: Embedder | None = None
    """None: the optional package is not installed; what needs it is said to be not available."""
    soak: SoakTools | None = None
    """None: no continuous load can be sent."""
    keeper: SoakKeeper | None = None
    asked: list[Asked] = field(default_factory=list)
    health: list[Health] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began_s = self.now()
        self._simulated = False

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
        endpoint = self.subjects.endpoint(subject)
        self._simulated = self._simulated or endpoint.simulated
        answers = self.asker.ask(endpoint, asks, in_flight=in_flight)
        names = parts or ("",) * len(asks)
        self.asked += [
            Asked(case, subject, ask, answer, repeat, part)
            for ask, answer, part in zip(asks, answers, names, strict=True)
        ]
        return answers

    def model(self, subject: Subject) -> str:
        """The model's name as the subject serves it."""
        return self.subjects.endpoint(subject).model

    def look_after(self, case: str, subjects: Sequence[Subject] = ARMS) -> list[Health]:
        """Note how the subjects are after a case; one that is dead is started again.

        Raises: DeploymentError when it cannot be: end the suite with `complete=False`.
        """
        seen: list[Health] = []
        for subject in subjects:
            healthy = self.subjects.healthy(subject)
            counters = self.probe.read(self.subjects.endpoint(subject)) if healthy else None
            state = Health(
                case,
                subject,
                healthy,
                restarted=not healthy,
                rss_bytes=self.subjects.rss_bytes(subject) if healthy else None,
                kv_cache_usage=None if counters is None else counters.kv_cache_usage,
            )
            seen.append(state)
            self.health.append(state)
            if not healthy:
                self.say(f"{case}: the {subject} engine died; starting it again")
                self.subjects.restart(subject)
        return seen

    @property
    def limit_s(self) -> float:
        """How long the suite may take in all."""
        return self.deadline_s - self._began_s

    @property
    def time_left(self) -> bool:
        return self.now() < self.deadline_s

    def record(
        self,
        suite: str,
        *,
        complete: bool = True,
        notes: Sequence[str] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> SuiteRecord:
        """Everything that was noted, as a suite returns it."""
        return SuiteRecord(
            suite=suite,
            pair_key=self.pair_key,
            baseline=self.baseline,
            speculative=self.speculative,
            asked=tuple(self.asked),
            health=tuple(self.health),
            extra=extra or {},
            notes=(*self.subjects.notes, *notes),
            started_unix_s=self.started_unix_s,
            seconds=self.now() - self._began_s,
            complete=complete,
            simulated=self._simulated,
        )


class Suite(Protocol):
    """The sending half of a suite."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """What determines the requests it sends (a version, sizes, …); plain JSON, part of the
        record's id: other settings are another run."""

    def run(self, bench: Bench) -> SuiteRecord:
        """Send everything; a case that kills an engine is recorded and the rest goes on."""
