"""What a suite sent to both arms and what came back: raw, to be judged later and again.

A suite is two halves. `run/suites/NAME.py` sends; it judges nothing beyond what it must know to go
on. `analyse/suites/NAME.py` reads a `SuiteRecord` and finds; it can be run again on old records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from orchestrator.ports import Answer, Ask
from orchestrator.records import Arm

Subject = Arm | Literal["baseline_again"]
"""Whom a case was put to; `baseline_again` is the baseline relaunched: the floor of differences."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of one case, to one subject, and its answer."""

    case: str
    subject: Subject
    ask: Ask
    answer: Answer
    repeat: int = 0
    part: str = ""
    """Which of a case's requests, where it has several."""


@dataclass(frozen=True, slots=True)
class Health:
    """How a subject was after a case."""

    case: str
    subject: Subject
    healthy: bool
    restarted: bool = False
    """The engine was dead and was started again; what follows ran on the new one."""
    rss_bytes: float | None = None
    kv_cache_usage: float | None = None
    """Fraction of the KV cache in use once the case had ended."""


@dataclass(frozen=True)
class SuiteRecord:
    """Everything one suite saw of one deployment pair."""

    suite: str
    pair_key: str
    baseline: Mapping[str, Any]
    """`Deployment.as_dict()`."""
    speculative: Mapping[str, Any]
    asked: tuple[Asked, ...]
    health: tuple[Health, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What a suite's other half needs besides (token margins, counters, …); plain JSON."""
    notes: tuple[str, ...] = ()
    started_unix_s: float = 0.0
    seconds: float = 0.0
    complete: bool = True
    """False: time ran out, or an engine stayed dead; what is missing is not passed."""
    simulated: bool = False
    engines: tuple[tuple[str, str | None], ...] = ()
    """Name and version of the engines, as they say themselves."""


class CaseStatus(StrEnum):
    """What became of one case."""

    PASS = "pass"
    FAIL = "fail"
    """The speculative arm does not do what it must, though the baseline does."""
    BOTH_FAIL = "fail in both"
    """Neither arm does: the engine's limit or fault, not speculation's."""
    UNSUPPORTED = "unsupported"
    """The server says so itself, in both arms."""
    REFUSED = "unsupported with speculation"
    """Only the speculative arm says that it cannot."""
    DIFFERS = "differs"
    """Both do what they must, but not the same where it must be the same."""
    CANNOT_TELL = "cannot tell"
    """It ran, and the evidence decides neither way."""
    CRASHED = "crashed"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One line of a suite's result."""

    case: str
    status: CaseStatus
    must: str
    """What had to hold."""
    seen: str
    """What was seen; one line."""
    crashed: tuple[Subject, ...] = ()
    reproduce: str | None = None
    """A command line that shows it again."""
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SuiteResult:
    """A suite's judgement of one deployment pair."""

    suite: str
    pair_key: str
    label: str
    """The speculative deployment's label."""
    verdict: str
    """In the suite's own words: `compatible`, `lossless`, `2 findings`, …"""
    ok: bool | None
    """None: not enough evidence."""
    cases: tuple[CaseResult, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    complete: bool = True
    simulated: bool = False

    @property
    def findings(self) -> tuple[CaseResult, ...]:
        """Where speculation is worse than the baseline, and crashes of either."""
        worse = (
            CaseStatus.FAIL,
            CaseStatus.REFUSED,
            CaseStatus.DIFFERS,
            CaseStatus.CRASHED,
        )
        return tuple(case for case in self.cases if case.status in worse)
