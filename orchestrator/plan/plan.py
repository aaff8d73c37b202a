"""What will be run, what will not, and what it will take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.plan.deployment import Deployment
from orchestrator.plan.trial import Cell, Trial

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to know before it runs. An error means that it must not run."""

    severity: Severity
    rule: str
    text: str
    hint: str | None = None

    def __str__(self) -> str:
        return self.text + (f"; {self.hint}" if self.hint else "")


@dataclass(frozen=True, slots=True)
class SkippedCell:
    """A cell that cannot work, or says nothing, and why."""

    cell: Cell
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long it will take. Never a measurement: `assumption` says what it rests on.

    `least` is with every trial ending after pairs.min, `most` with all of pairs.max.
    """

    least_s: float
    most_s: float
    start_s: float
    """Of that, starting engines."""
    devices_per_pair: float
    device: Literal["GPU", "host"]
    pairs_at_once: int
    assumption: str
    token_s: float = 0.0
    """One token of one stream, as assumed."""

    @property
    def device_hours(self) -> tuple[float, float]:
        """Formula: devices held by the pairs that run at once x duration / 3600, least and most."""
        held = self.devices_per_pair * self.pairs_at_once
        return held * self.least_s / 3600, held * self.most_s / 3600


@dataclass(frozen=True)
class SearchPlan:
    """How the comparisons of a plan are walked."""

    algorithm: str
    scheduler: str
    objectives: tuple[str, ...]
    constraints: Mapping[str, float]
    """The service objectives, in seconds: a cell that breaks one is no candidate for the best."""
    candidates: int
    trials: int | None
    minutes: float | None
    device_hours: float | None
    first: tuple[str, ...]
    """Ids of the trials to try first, in order."""
    preset: str | None = None

    @property
    def most_trials(self) -> int:
        """Comparisons that are begun at most."""
        return self.candidates if self.trials is None else min(self.trials, self.candidates)


@dataclass(frozen=True)
class Plan:
    """Trials in the order in which they run: all of one speculative deployment together."""

    name: str
    trials: tuple[Trial, ...]
    prompt_starts: tuple[int, ...]
    """Per trial, where its prompts begin in the shuffled set (`plan.prompts`)."""
    skipped: tuple[SkippedCell, ...]
    notices: tuple[Notice, ...]
    deployments: tuple[Deployment, ...]
    estimate: Estimate
    control: str
    """Why the A/A control is where it is."""
    seed: int
    simulated: bool = False
    search: SearchPlan | None = None
    """None: every cell, in this order."""

    @property
    def engine_starts(self) -> int:
        """One per distinct deployment, however many trials use it; attached servers already run."""
        return sum("attached" not in deployment.engine for deployment in self.deployments)

    @property
    def errors(self) -> tuple[Notice, ...]:
        return tuple(notice for notice in self.notices if notice.severity == "error")

    @property
    def warnings(self) -> tuple[Notice, ...]:
        return tuple(notice for notice in self.notices if notice.severity == "warning")
