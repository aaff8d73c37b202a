"""When to send: pure functions of the number of requests and a seeded generator.

Every pattern is one idea in two steps: arrivals of a process with rate 1, then a change of time
that gives them the wanted rate, constant or not. So a ramp of a Poisson process is a Poisson
process, and a constant ramp is evenly spaced in work, not in time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.plan.trial import LoadPoint

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RateSegment:
    """`duration_s` during which the rate goes from `start_rps` to `end_rps` in a straight line."""

    duration_s: float
    start_rps: float
    end_rps: float


@dataclass(frozen=True, slots=True)
class RateProfile:
    """The offered rate as a function of time, piece by piece; the last rate goes on for ever.

    Raises: ValueError for a rate or a duration that is negative or not finite.
    """

    segments: tuple[RateSegment, ...]

    def __post_init__(self) -> None:
        if not self.segments:
            raise ValueError("a rate profile needs at least one segment, got none")
        for segment in self.segments:
            for value in (segment.duration_s, segment.start_rps, segment.end_rps):
                if not (math.isfinite(value) and value >= 0):
                    raise ValueError(
                        f"durations and rates must be finite and >= 0, got {value:g} in {segment}"
                    )

    def expected(self, elapsed_s: float) -> float:
        """Requests due by `elapsed_s`.

        Formula: ∫ rate dt from 0 to elapsed_s. Unit: requests.
        """
        total, left_s = 0.0, max(0.0, elapsed_s)
        for segment in self.segments:
            total += _work(segment, min(left_s, segment.duration_s))
            left_s -= segment.duration_s
            if left_s <= 0:
                return total
        return total + left_s * self.segments[-1].end_rps

    def when(self, requests: float) -> float:
        """The time by which `requests` are due: the inverse of `expected`. Unit: seconds.

        Undefined (inf) if the profile ends at rate 0 before that many are due.
        """
        left, passed_s = requests, 0.0
        for segment in self.segments:
            whole = _work(segment, segment.duration_s)
            if left <= whole:
                return passed_s + _time_for(segment, left)
            left -= whole
            passed_s += segment.duration_s
        last_rps = self.segments[-1].end_rps
        return passed_s + left / last_rps if last_rps > 0 else math.inf


def steady(rate_rps: float) -> RateProfile:
    """One rate, always."""
    return RateProfile((RateSegment(0.0, rate_rps, rate_rps),))


def ramp(from_rps: float, to_rps: float, over_s: float) -> RateProfile:
    """From one rate to another in a straight line, then on at the second."""
    return RateProfile((RateSegment(over_s, from_rps, to_rps),))


def bursts(
    base_rps: float, burst_rps: float, every_s: float, burst_s: float, count: int
) -> RateProfile:
    """`count` bursts of `burst_s`, one in every `every_s` and at its end; then the base rate."""
    if not 0 < burst_s < every_s:
        raise ValueError(f"0 < burst_s < every_s must hold, got {burst_s:g} and {every_s:g}")
    cycle = (
        RateSegment(every_s - burst_s, base_rps, base_rps),
        RateSegment(burst_s, burst_rps, burst_rps),
    )
    return RateProfile((*cycle * count, RateSegment(0.0, base_rps, base_rps)))


def constant_units(count: int) -> Floats:
    """0, 1, 2, …: evenly spaced at rate 1, the first at once."""
    return np.arange(count, dtype=np.float64)


def gamma_units(count: int, shape: float, rng: np.random.Generator) -> Floats:
    """Arrivals whose gaps are gamma-distributed with mean 1.

    Formula: gap ~ Gamma(shape, 1/shape); its coefficient of variation is 1/√shape. Shape 1 is the
    Poisson process; below 1 the arrivals come in bursts. The first arrival is one gap after the
    start, so that the start is not special.
    """
    if not shape > 0:
        raise ValueError(f"burstiness > 0 must hold, got {shape:g}")
    return np.cumsum(rng.gamma(shape, 1.0 / shape, count))


def trace_offsets(arrivals_s: Sequence[float], count: int, time_scale: float = 1.0) -> Floats:
    """The first `count` arrivals of a recorded trace, from 0.

    Formula: (t_i − t_0) · time_scale, of the times in order. A scale of 0.5 plays the trace twice
    as fast.
    Raises: ValueError if the trace is too short or the scale is not positive.
    """
    if not (math.isfinite(time_scale) and time_scale > 0):
        raise ValueError(f"time_scale > 0 must hold, got {time_scale:g}")
    if len(arrivals_s) < count:
        raise ValueError(
            f"the trace has {len(arrivals_s)} arrivals, {count} are needed; "
            "use a longer trace or fewer requests"
        )
    times = np.sort(np.asarray(arrivals_s, dtype=np.float64))[:count]
    if not np.all(np.isfinite(times)):
        raise ValueError("every arrival of a trace must be a finite time, got NaN or infinity")
    return (times - times[0]) * time_scale if count else times


def scale_for_rate(arrivals_s: Sequence[float], rate_rps: float) -> float:
    """The time scale that gives a trace the mean rate `rate_rps`.

    Formula: (last − first) / (n − 1) is the trace's mean gap; the scale is 1/rate divided by it.
    Raises: ValueError if the trace has no mean gap.
    """
    span_s = max(arrivals_s, default=0.0) - min(arrivals_s, default=0.0)
    if len(arrivals_s) < 2 or not span_s > 0:
        raise ValueError(
            f"a trace needs two different arrival times to be scaled, got {len(arrivals_s)} "
            f"arrivals over {span_s:g} s"
        )
    return (len(arrivals_s) - 1) / (span_s * rate_rps)


def offsets(
    load: LoadPoint,
    count: int,
    rng: np.random.Generator,
    *,
    profile: RateProfile | None = None,
    trace_s: Sequence[float] | None = None,
) -> tuple[float | None, ...]:
    """Planned send times of `count` requests, in order. Unit: seconds after the block's start.

    A closed loop plans none (None: when a slot is free). `profile` replaces the constant rate of
    `load.rate_rps`; a trace is scaled to `load.rate_rps` where that is given.
    Raises: ValueError naming what is missing.
    """
    if load.mode == "closed":
        return (None,) * count
    if load.arrivals == "trace":
        if trace_s is None:
            raise ValueError("arrivals: trace needs a recorded trace, got none")
        scale = scale_for_rate(trace_s, load.rate_rps) if load.rate_rps else 1.0
        return tuple(trace_offsets(trace_s, count, scale).tolist())
    if profile is None:
        if load.rate_rps is None or not load.rate_rps > 0:
            raise ValueError(f"an open loop needs rate_rps > 0, got {load.rate_rps}")
        profile = steady(load.rate_rps)
    if load.arrivals == "constant":
        units = constant_units(count)
    else:
        units = gamma_units(count, load.burstiness if load.arrivals == "gamma" else 1.0, rng)
    times = tuple(profile.when(unit) for unit in units.tolist())
    if times and math.isinf(times[-1]):
        due = sum(map(math.isfinite, times))
        raise ValueError(
            f"the rate profile ends at 0 requests/s after {due} of {count} requests; "
            "plan fewer requests or end it at a higher rate"
        )
    return times


def _work(segment: RateSegment, passed_s: float) -> float:
    """Requests due in the first `passed_s` of a segment: the trapezium under its line."""
    if segment.duration_s == 0:
        return 0.0
    rise_rps = (segment.end_rps - segment.start_rps) * (passed_s / segment.duration_s)
    return passed_s * (segment.start_rps + rise_rps / 2)


def _time_for(segment: RateSegment, requests: float) -> float:
    """How long a segment takes for `requests` (no more than it has): the root of the parabola.

    Formula: with f the fraction of the duration d, r·f + Δ·f²/2 = n/d =: m, solved as
    f = 2m / (r + √(r² + 2·Δ·m)), which loses no digits when the rise Δ is small.
    """
    if requests <= 0 or segment.duration_s == 0:
        return 0.0
    mean_rps = requests / segment.duration_s
    rise_rps = segment.end_rps - segment.start_rps
    root = math.sqrt(max(0.0, segment.start_rps**2 + 2 * rise_rps * mean_rps))
    if segment.start_rps + root == 0:
        return segment.duration_s
    return segment.duration_s * min(1.0, 2 * mean_rps / (segment.start_rps + root))
