"""One of four verdicts, from the pairs measured so far."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.analyse.boundaries import LookPlan
from orchestrator.analyse.further_pairs import pairs_needed
from orchestrator.analyse.interval import Interval, p_value_beyond, repeated_interval
from orchestrator.analyse.look_plan import look_plan
from orchestrator.analyse.pairs import Pair, RatioSeries, ratio_series
from orchestrator.analyse.robust import RobustEstimate, robust_estimate
from orchestrator.analyse.trend import Trend, trend_of
from orchestrator.plan.trial import Protocol


class Verdict(StrEnum):
    """What may be said of the speculative arm."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and everything it rests on. Numbers are speedups (> 1: speculation is better)."""

    verdict: Verdict
    metric: str
    confidence: float
    margin: float
    pairs: int
    """Pairs that count."""
    pairs_left_out: int
    """Pairs that do not: invalid, or the metric undefined in them."""
    speedup: float | None
    """Geometric mean over the pairs; None without any."""
    low: float | None
    """Interval, valid at every look; None before the first look."""
    high: float | None
    further_pairs: int | None
    """With "cannot tell": how many more pairs would decide, None where no sensible number would."""
    p_value: float
    """Of "within the margin"; valid at every look; 1 before the first."""
    interval: Interval | None
    trend: Trend
    robust: RobustEstimate | None
    plan: LookPlan
    notes: tuple[str, ...] = ()
    """What a reader should know before believing it."""
    alone: Verdict | None = None
    """What its own interval says, though not among the cells of its sweep; None: not withheld."""

    @property
    def log_margin(self) -> float:
        return math.log1p(self.margin)


def classify(interval: Interval, log_margin: float) -> Verdict:
    """The verdict that an interval allows.

    Formula, with M = log(1 + margin): faster if low > M; slower if high < -M; no practical
        difference if -M <= low and high <= M; else cannot tell.
    """
    if interval.log_low > log_margin:
        return Verdict.FASTER
    if interval.log_high < -log_margin:
        return Verdict.SLOWER
    if -log_margin <= interval.log_low and interval.log_high <= log_margin:
        return Verdict.NO_PRACTICAL_DIFFERENCE
    return Verdict.CANNOT_TELL


def decide(series: RatioSeries, protocol: Protocol) -> Decision:
    """The verdict after these pairs; may be asked after every one of them.

    Only the first `pairs_max` pairs that count are used: the plan pays for no later look.
    Raises: ValueError for a protocol that is not a plan, or a ratio that is not finite.
    """
    used = series.up_to(protocol.pairs_max)
    plan = look_plan(protocol, len(used.log_ratios))
    log_margin = math.log1p(protocol.margin)
    interval = repeated_interval(used.log_ratios, plan)
    pairs = len(used.log_ratios)
    trend = trend_of(used.log_ratios, used.baseline_first)
    robust = robust_estimate(used.log_ratios)
    verdict = Verdict.CANNOT_TELL if interval is None else classify(interval, log_margin)
    further: int | None = None
    if interval is None:
        further = plan.pairs_min - pairs
    elif verdict is Verdict.CANNOT_TELL:
        further = pairs_needed(interval, plan, log_margin)
    return Decision(
        verdict=verdict,
        metric=series.metric,
        confidence=protocol.confidence,
        margin=protocol.margin,
        pairs=pairs,
        pairs_left_out=series.left_out,
        speedup=math.exp(math.fsum(used.log_ratios) / pairs) if pairs else None,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        further_pairs=further,
        p_value=p_value_beyond(used.log_ratios, plan, log_margin),
        interval=interval,
        trend=trend,
        robust=robust,
        plan=plan,
        notes=tuple(_notes(used, interval, trend, robust)),
    )


def decide_pairs(pairs: Iterable[Pair], protocol: Protocol, metric: str | None = None) -> Decision:
    """`decide` for a metric of a trial's pairs; by default the protocol's headline."""
    return decide(ratio_series(pairs, metric or protocol.metric), protocol)


def should_stop(decision: Decision, protocol: Protocol, *, pairs_measured: int) -> bool:
    """Whether the trial has its answer, or no look left.

    A verdict ends a trial, unless the ratio itself seems to drift: then it is measured on, since
    the pairs so far may not speak for those to come. `pairs_measured` counts invalid pairs too.
    Of a trial that is looked at once, nothing that was measured decides when it ends.
    """
    if pairs_measured >= protocol.pairs_max:
        return True
    if protocol.looks == "once":
        return False
    return decision.verdict is not Verdict.CANNOT_TELL and not decision.trend.may_drift


def _notes(
    series: RatioSeries,
    interval: Interval | None,
    trend: Trend,
    robust: RobustEstimate | None,
) -> Iterable[str]:
    if trend.drift is not None and trend.drift.present:
        yield (
            f"the ratio drifts: x{math.exp(trend.drift.estimate):.3f} from first to last pair "
            f"(p = {trend.drift.p_value:.2g}); the speedup is an average over the trial"
        )
    if trend.order is not None and trend.order.present:
        yield (
            f"the order matters: the ratio is x{math.exp(trend.order.estimate):.3f} with the "
            f"baseline first against second (p = {trend.order.p_value:.2g}); "
            "alternating orders cancel it in the mean"
        )
    if robust is not None and robust.outliers:
        indices = ", ".join(str(series.pair_indices[k]) for k in robust.outliers)
        yield (
            f"far from the others: pair {indices}; kept in the mean, the robust estimate is "
            f"x{robust.speedup:.3f}"
        )
    if (
        interval is not None
        and robust is not None
        and not interval.log_low <= robust.log_center <= interval.log_high
    ):
        yield "the robust estimate lies outside the interval: look at the single pairs"
