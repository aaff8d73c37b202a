"""What an engine start costs beside a measurement, as it is seen while the search goes on."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.records import Outcome

MOST = 8


@dataclass
class Starts:
    """Seconds waited for engines, and seconds measured, by the trials that said so."""

    assumed: float
    """An engine start / a trial, before any was seen."""
    waited_s: float = 0.0
    measured_s: float = 0.0
    cold: int = 0
    trials: int = 0

    def saw(self, outcome: Outcome, *, warm: bool) -> None:
        """A trial has ended; `warm`: the one before it was on the same engines."""
        if outcome.wall_s is None or outcome.waiting_s is None:
            return
        self.trials += 1
        self.measured_s += outcome.wall_s - outcome.waiting_s
        if not warm:
            self.cold += 1
            self.waited_s += outcome.waiting_s

    @property
    def turn(self) -> int:
        """From how many proposals one is chosen that needs no engine to be started.

        Formula: 1 + mean seconds waited for a cold engine / mean seconds of the rest of a trial,
        rounded, from 1 to 8; the assumed ratio before both were seen. The dearer a start, the
        longer a warm engine is kept.
        """
        ratio = self.assumed
        if self.cold and self.measured_s > 0:
            ratio = (self.waited_s / self.cold) / (self.measured_s / self.trials)
        return max(1, min(MOST, 1 + round(ratio)))
