"""Whether requests met their bounds."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.measure.latency import e2e_s, tpot_s, ttft_from_due_s, ttft_s
from orchestrator.records import RequestRecord


@dataclass(frozen=True, slots=True)
class SloBounds:
    """Bounds that each request has to meet; None = no bound."""

    ttft_s: float | None = None
    """From the planned time in an open loop: a user waits from when they asked."""
    tpot_s: float | None = None
    e2e_s: float | None = None

    @property
    def given(self) -> bool:
        return any(b is not None for b in (self.ttft_s, self.tpot_s, self.e2e_s))


def meets(request: RequestRecord, bounds: SloBounds) -> bool:
    """Whether a request completed and kept every bound.

    A latency that is undefined breaks its bound, with one exception: an answer of a single token
    has no time per output token, and so nothing that could be too slow.
    """
    if not request.completed:
        return False
    from_due = ttft_from_due_s(request)
    first = ttft_s(request) if from_due is None else from_due
    single = request.output_tokens is not None and request.output_tokens < 2
    return (
        _within(first, bounds.ttft_s)
        and (single or _within(tpot_s(request), bounds.tpot_s))
        and _within(e2e_s(request), bounds.e2e_s)
    )


def _within(value: float | None, bound: float | None) -> bool:
    return bound is None or (value is not None and value <= bound)


def slo_attainment(requests: tuple[RequestRecord, ...], bounds: SloBounds) -> float | None:
    """Share of the planned requests that kept every bound; failed ones count against.

    Formula: requests meeting every bound / requests planned
    Undefined: no bound given, or nothing planned.
    """
    if not bounds.given or not requests:
        return None
    return sum(meets(request, bounds) for request in requests) / len(requests)


def goodput_rps(
    requests: tuple[RequestRecord, ...], bounds: SloBounds, duration_s: float
) -> float | None:
    """Requests within every bound, per second.

    Formula: requests meeting every bound / measured duration
    Unit: 1/s
    Undefined: no bound given, or no duration.
    """
    if not bounds.given or duration_s <= 0:
        return None
    return sum(meets(request, bounds) for request in requests) / duration_s


def goodput_tok_per_s(
    requests: tuple[RequestRecord, ...], bounds: SloBounds, duration_s: float
) -> float | None:
    """Output tokens delivered within every bound, per second; without a bound all of them count.

    Formula: output tokens of requests meeting every bound / measured duration
    Unit: tokens/s
    Undefined: no duration, or the server's usage is missing for one of those requests.
    """
    if duration_s <= 0:
        return None
    counts = [r.output_tokens for r in requests if meets(r, bounds)]
    if any(count is None for count in counts):
        return None
    return sum(count for count in counts if count is not None) / duration_s
