"""What may be planted in a simulated server: faults at known moments, drifts of known rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.adapters.simulated.defects import Defect

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Faults:
    """Planted faults. Times are seconds of the engine's life (0 = it began to answer)."""

    crash_at_s: float | None = None
    hang_from_s: float | None = None
    stall_at_s: float | None = None
    stall_s: float = 0.0
    stall_every_s: float | None = None
    """From the first stall on, another one after so long, again and again."""
    error_on_request: int | None = None
    """The n-th request (from 1) is answered with HTTP 500."""
    error_mid_stream_on_request: int | None = None
    """The n-th request breaks after its first chunk."""
    garbage_output: bool = False
    slow_start_s: float = 0.0
    start_failure: Literal["out_of_memory", "start_failed"] | None = None
    defects: tuple[Defect, ...] = ()
    """Wrong answers, rather than none."""
    first_life_only: bool = False
    """A restarted engine has none of these."""


@dataclass(frozen=True)
class Drifts:
    """Planted slow changes over the engine's life; a restart undoes them."""

    acceptance_decay_per_hour: float = 0.0
    """Acceptance is multiplied by exp(−rate · hours)."""
    acceptance_decay_by_category: Mapping[str, float] = field(default_factory=dict)
    step_growth_per_hour: float = 0.0
    """Step time is multiplied by 1 + rate · hours."""
    leak_bytes_per_s: float = 0.0
    cured_by_flush: bool = False
    """An emptied cache undoes them, too."""
    leak_when: Literal["always", "speculating", "not_speculating"] = "always"
    """`not_speculating`: only in steps where the speculation length is 0 (never while idle)."""

    @property
    def acceptance_changes(self) -> bool:
        return self.acceptance_decay_per_hour != 0 or any(
            self.acceptance_decay_by_category.values()
        )

    def acceptance_factor(self, category: str, age_s: float) -> float:
        rate = self.acceptance_decay_by_category.get(category, self.acceptance_decay_per_hour)
        return math.exp(-rate * age_s / SECONDS_PER_HOUR)

    def step_factor(self, age_s: float) -> float:
        return 1.0 + self.step_growth_per_hour * age_s / SECONDS_PER_HOUR

    def leaks(self, length: int | None) -> bool:
        """Whether memory leaks in a step of this speculation length; None = the engine is idle."""
        if self.leak_when == "always" or length is None:
            return self.leak_when == "always"
        return (self.leak_when == "speculating") == (length > 0)


class Incidents:
    """Turns planted faults into what happens on the clock of one engine's life."""

    def __init__(self, faults: Faults, born_s: float) -> None:
        def on_clock(after_s: float | None) -> float:
            return math.inf if after_s is None else born_s + after_s

        self.crash_s, self._hang_s = on_clock(faults.crash_at_s), on_clock(faults.hang_from_s)
        self._stall_s, self._stall_length_s = on_clock(faults.stall_at_s), faults.stall_s
        self._stall_every_s = math.inf if faults.stall_every_s is None else faults.stall_every_s
        self.first_s = min(self.crash_s, self._hang_s, self._stall_s)
        """Before this moment nothing happens: the engine need not ask."""
        self.crashed = False
        self.hung = False

    def struck(self, until_s: float) -> float | None:
        """The moment, up to `until_s`, at which the engine died or got stuck; None = it goes on."""
        if self.crash_s <= until_s and (self.hung or self.crash_s <= self._hang_s):
            self.crashed = True
            return self.crash_s
        if self._hang_s <= until_s:
            self.hung = True
            return self._hang_s
        return None

    def stall_before(self, end_s: float) -> float:
        """Extra seconds of a step that would end at `end_s`; a stall is felt once."""
        if end_s < self._stall_s:
            return 0.0
        length_s = self._stall_length_s
        self.plant_stall(self._stall_s + self._stall_every_s, length_s)
        return length_s

    def plant_stall(self, at_s: float, length_s: float) -> None:
        """The next stall, in place of the one that was planned."""
        self._stall_s, self._stall_length_s = at_s, length_s
        self.first_s = min(self.crash_s, self._hang_s, self._stall_s)
