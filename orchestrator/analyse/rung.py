"""One rung of a ladder: what both arms did under one load."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.analyse.interval import Interval
from orchestrator.analyse.saturation import Saturation
from orchestrator.plan.ladder import load_level
from orchestrator.plan.trial import LoadPoint
from orchestrator.records import Arm


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval.

    Raises: ValueError unless low <= value <= high.
    """

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(
                "`low <= value <= high` must hold, "
                f"but got (low={self.low}, value={self.value}, high={self.high})"
            )

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        """A number without noise."""
        return cls(value, value, value)

    @classmethod
    def of(cls, interval: Interval) -> Estimate:
        return cls(interval.speedup, interval.low, interval.high)

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True, slots=True)
class ArmAtRung:
    """One arm under one load; None where undefined."""

    attainment: Estimate | None = None
    """None without an SLO."""
    achieved_over_offered: float | None = None
    """None in a closed loop, which offers only what is taken."""
    output_tok_per_s: Estimate | None = None
    ttft_s: Estimate | None = None
    tpot_s: Estimate | None = None
    e2e_s: Estimate | None = None
    saturation: Saturation | None = None

    @property
    def saturated(self) -> bool:
        return self.saturation is not None and self.saturation.saturated


@dataclass(frozen=True)
class Rung:
    """A load and what it did to both arms. `skipped` says why it was not run, or not to its end."""

    load: LoadPoint
    arms: Mapping[Arm, ArmAtRung] = field(default_factory=dict)
    speedups: Mapping[str, Estimate] = field(default_factory=dict)
    """By METRICS name (`speedup_tpot`, ...), each with the interval of its pairs."""
    skipped: str | None = None

    @property
    def offered(self) -> float:
        """Requests in flight (closed) or requests/s (open)."""
        return load_level(self.load)

    def achieved_rps(self, arm: Arm) -> float | None:
        """Formula: achieved/offered * offered. Unit: 1/s. Undefined: closed loop, or not run."""
        at = self.arms.get(arm)
        if at is None or at.achieved_over_offered is None:
            return None
        return at.achieved_over_offered * self.offered


def in_order(rungs: Iterable[Rung]) -> tuple[Rung, ...]:
    """The rungs of a ladder, lowest load first.

    Raises: ValueError when two offer the same load, or closed and open loops are mixed.
    """
    ordered: Sequence[Rung] = sorted(rungs, key=lambda rung: rung.offered)
    if len({rung.load.mode for rung in ordered}) > 1:
        raise ValueError("a ladder is of one mode: closed and open loops do not compare")
    for below, above in itertools.pairwise(ordered):
        if below.offered == above.offered:
            raise ValueError(f"two rungs of one ladder offer the same load, {below.load.label()}")
    return tuple(ordered)


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """above / below with an interval, of two independent positive estimates.

    Formula: on the log scale d = a - b, low = d - sqrt((a - a_low)^2 + (b_high - b)^2), high alike
    Raises: ValueError for an estimate whose interval reaches 0 (its logarithm is undefined).
    Source: the method of variance estimates recovery, Zou & Donner 2008, Stat. Med. 27.
    """
    for estimate in (above, below):
        if estimate.low <= 0:
            raise ValueError(f"a ratio needs estimates > 0, but got {estimate}")
    a, a_low, a_high = (math.log(x) for x in (above.value, above.low, above.high))
    b, b_low, b_high = (math.log(x) for x in (below.value, below.low, below.high))
    d = a - b
    low, high = d - math.hypot(a - a_low, b_high - b), d + math.hypot(a_high - a, b - b_low)
    return Estimate(math.exp(d), math.exp(low), math.exp(high))


def difference(above: Estimate, below: Estimate) -> Estimate:
    """above - below with an interval, of two independent estimates; as `ratio`, without logs."""
    d = above.value - below.value
    return Estimate(
        d,
        d - math.hypot(above.value - above.low, below.high - below.value),
        d + math.hypot(above.high - above.value, below.value - below.low),
    )
