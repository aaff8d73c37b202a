"""Does the queue grow without bound? The over-saturation test of a block, or of a whole rung."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scipy.special import betaincinv

from orchestrator.analyse.growth import (
    Growth,
    Timeline,
    growth_in_flight,
    growth_of_ttft,
    timeline_of,
)
from orchestrator.records import RequestError, RequestRecord

CONFIDENCE = 0.95
"""One-sided, of each of the two growths; both must be there, so a false alarm is rarer."""
TOLERATED_SHORTFALL = 0.05
"""The knee's bound seen from the other side: who achieves 0.95 of what is offered keeps up."""
TURNED_AWAY_STATUS = frozenset({408, 429, 503, 504, 529})
TURNED_AWAY_ERRORS = frozenset(
    {RequestError.CONNECT_TIMEOUT, RequestError.FIRST_TOKEN_TIMEOUT, RequestError.TOTAL_TIMEOUT}
)


class Regime(StrEnum):
    """What a load does to a server."""

    STEADY = "steady"
    QUEUEING = "queueing"
    """Closed loop past the engine's cap: some always wait, but never more and more."""
    SATURATED = "saturated"
    UNDECIDED = "undecided"
    """Too few requests, a block that is short against its answers, or growth within chance."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """The finding, in words and in numbers; None where it could not be computed."""

    regime: Regime
    why: str
    in_flight: Growth | None = None
    """Requests that stay, per request that comes."""
    ttft: Growth | None = None
    """Seconds of further wait per second of load."""
    turned_away: int = 0
    achieved_over_offered: float | None = None

    @property
    def saturated(self) -> bool:
        return self.regime is Regime.SATURATED


def saturation_open(
    blocks: Sequence[Sequence[RequestRecord]], *, confidence: float = CONFIDENCE
) -> Saturation:
    """Whether an open loop offers more than the server can take, from one arm's blocks.

    Rule: saturated if
      (a) of the requests that come, more than 5 % stay, the whole one-sided interval of that share
          lies above 0, and so does that of the growth of TTFT (or too few first tokens came); or
      (b) more than 5 % of the requests were turned away (timed out; HTTP 429, 503, ...), the whole
          one-sided interval of that share above 5 %.
    Steady if at most 5 % stay; otherwise undecided.
    One block or several: blocks start from an empty server and are independent of each other.
    Raises: ValueError unless 0.5 < confidence < 1.
    Source: two growths, each with a t-interval, is GuideLLM's rule for over-saturation; the
        interval here is of increments, not of residuals about a line (see `growth`).
    """
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence: `0.5 < confidence < 1` must hold, but got {confidence}")
    return verdict_of(
        [timeline_of(block) for block in blocks],
        confidence=confidence,
        turned_away=sum(map(was_turned_away, _all(blocks))),
        achieved=achieved_over_offered(blocks),
    )


def saturation_closed(concurrency: int, engine_cap: int | None) -> Saturation:
    """The regime of a closed loop; it is never saturated: no more is sent than was answered.

    Rule: queueing if concurrency > engine_cap (vLLM's `max_num_seqs`, times the replicas).
    Undefined: "undecided" when the cap is not known.
    """
    if engine_cap is None:
        why = f"{concurrency} in flight; how many the engine runs at once is not known"
        return Saturation(Regime.UNDECIDED, why)
    if concurrency > engine_cap:
        why = (
            f"{concurrency} in flight, the engine runs {engine_cap} at once: "
            f"{concurrency - engine_cap} wait"
        )
        return Saturation(Regime.QUEUEING, why)
    return Saturation(
        Regime.STEADY, f"{concurrency} in flight fit into the engine's cap of {engine_cap}"
    )


def achieved_over_offered(blocks: Iterable[Sequence[RequestRecord]]) -> float | None:
    """Rate at which requests complete, over the rate at which they come; one arm's open blocks.

    Formula: achieved = sum (completed - 1) / sum (last end - first end)
             offered  = sum (planned - 1) / sum (last due - first due);  achieved / offered
    Between the first and the last end, not over the block's duration: the tail in which the last
    answers are finished would count against every short block.
    Unit: ratio; about 1 when the server keeps up
    Undefined: nothing was planned at a time (closed loop), or no block has two completions.
    """
    completed, completing_s, planned, coming_s = 0, 0.0, 0, 0.0
    for block in blocks:
        due = [r.offset_s for r in block if r.offset_s is not None]
        # Later turns of a conversation are not due at a time: the first ones stand for all.
        came = [r for r in block if r.offset_s is not None]
        ends = [r.end_s for r in came if r.completed and r.end_s is not None]
        if len(due) >= 2:
            planned += len(due) - 1
            coming_s += max(due) - min(due)
            completed += max(0, len(ends) - 1)
            completing_s += max(ends) - min(ends) if ends else 0.0
    if completing_s <= 0 or coming_s <= 0:
        return None
    return (completed / completing_s) / (planned / coming_s)


def was_turned_away(request: RequestRecord) -> bool:
    """Whether a request failed for want of capacity, as far as a client can tell."""
    if request.error is RequestError.HTTP_STATUS:
        return request.http_status in TURNED_AWAY_STATUS
    return request.error in TURNED_AWAY_ERRORS


def verdict_of(
    timelines: Sequence[Timeline],
    *,
    confidence: float,
    turned_away: int = 0,
    achieved: float | None = None,
) -> Saturation:
    """`saturation_open` on times alone, for whoever holds no records (`SaturationMonitor`)."""
    in_flight = growth_in_flight(timelines, confidence)
    ttft = growth_of_ttft(timelines, confidence)

    def found(regime: Regime, why: str) -> Saturation:
        return Saturation(regime, why, in_flight, ttft, turned_away, achieved)

    requests = sum(timeline.requests for timeline in timelines)
    if at_least(turned_away, requests, confidence) > TOLERATED_SHORTFALL:
        return found(
            Regime.SATURATED,
            f"{turned_away} of {requests} requests were turned away or timed out",
        )
    if in_flight is None:
        return found(
            Regime.UNDECIDED,
            f"{requests} requests in {len(timelines)} blocks are too few after the first answers "
            "to tell a growing queue; use longer blocks or more pairs",
        )
    share = f"{in_flight.rate:.0%} of the requests that come stay"
    if in_flight.rate <= TOLERATED_SHORTFALL:
        return found(Regime.STEADY, f"the queue does not grow: {share}")
    if in_flight.low <= 0:
        return found(
            Regime.UNDECIDED,
            f"{share}, which chance explains too in {requests} requests; "
            "longer blocks or more pairs would tell",
        )
    share += f" (at least {in_flight.low:.0%})"
    if ttft is None:
        return found(Regime.SATURATED, f"{share}, and too few first tokens came to see the wait")
    if ttft.low <= 0:
        return found(
            Regime.UNDECIDED,
            f"{share}, but TTFT is not seen to grow: the batch may still be filling up; "
            "longer blocks would tell",
        )
    return found(
        Regime.SATURATED,
        f"{share} and TTFT grows by {ttft.rate:.2g} s a second (at least {ttft.low:.2g})",
    )


def at_least(count: int, of: int, confidence: float) -> float:
    """One-sided lower bound of a proportion; 0 for none. Source: Clopper & Pearson 1934."""
    if count == 0:
        return 0.0
    return float(betaincinv(count, of - count + 1, 1 - confidence))


def _all(blocks: Iterable[Sequence[RequestRecord]]) -> Iterable[RequestRecord]:
    return (request for block in blocks for request in block)
