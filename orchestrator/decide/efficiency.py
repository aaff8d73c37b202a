"""How much of the machines' time a sweep spent on measuring, and where the rest went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.records import RunUse


@dataclass(frozen=True)
class Efficiency:
    """Over all runs of a sweep: one that was interrupted and went on counts with both.

    Unit: `pair_seconds` and everything below it are seconds of one device pair.
    """

    runs: int
    wall_s: float
    device_pairs: int
    """The most that a run had."""
    pair_seconds: float
    """Formula: sum over runs of wall seconds x device pairs."""
    measured_s: float
    warmup_s: float
    starting_s: float
    """Trials stood still for engine starts."""
    waiting_s: float
    """Trials stood still for a free device pair."""
    engine_starts: int
    failed_starts: int
    engines_starting_s: float
    """Sum over engines from order to ready: more than `starting_s` where starts overlapped."""

    @property
    def fraction(self) -> float | None:
        """Formula: seconds inside measured blocks / (wall seconds x device pairs).
        Undefined: no time has passed."""
        return self.measured_s / self.pair_seconds if self.pair_seconds else None

    @property
    def other_s(self) -> float:
        """Neither measured nor lost to a known cause: starting Ray, suites, the report, pairs that
        had no trial left."""
        known = self.measured_s + self.warmup_s + self.starting_s + self.waiting_s
        return max(0.0, self.pair_seconds - known)


def efficiency(runs: Sequence[RunUse]) -> Efficiency | None:
    """Undefined: None when no run told what it had (a simulated sweep, attached servers)."""
    if not runs:
        return None
    return Efficiency(
        runs=len(runs),
        wall_s=sum(run.wall_s for run in runs),
        device_pairs=max(run.device_pairs for run in runs),
        pair_seconds=sum(run.wall_s * run.device_pairs for run in runs),
        measured_s=sum(run.measured_s for run in runs),
        warmup_s=sum(run.warmup_s for run in runs),
        starting_s=sum(run.waiting_for_starts_s for run in runs),
        waiting_s=sum(run.waiting_s for run in runs),
        engine_starts=sum(run.engine_starts for run in runs),
        failed_starts=sum(run.failed_starts for run in runs),
        engines_starting_s=sum(run.engines_starting_s for run in runs),
    )
