"""What a burst or a fault did to the clients, and how long until all was as before."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

HOLD = 4
"""Requests in a row that must be as before …"""
SLOWER = 1.5
"""… none failed, and their median no slower than so many times the median before …"""
SLACK_S = 0.1
"""… and so much."""
BEFORE_MIN = 5


class Seen(NamedTuple):
    """One request around an event; seconds on the soak's clock."""

    sent_s: float
    first_s: float | None
    """When its first token came."""
    end_s: float
    tokens: int | None
    error: str | None


@dataclass(frozen=True)
class Recovery:
    """One arm around one event."""

    requests: int
    """Sent between the event's begin and the recovery, or the end of what was looked at."""
    failed: int
    errors: tuple[tuple[str, int], ...]
    recovered_s: float | None
    """After the event's end; 0: as before at once. None: not within what was looked at."""
    watched_s: float
    """How long after the event's end it was looked at."""
    overshoot: float | None
    """Longest time to the first token from the event's begin on, over the median before."""
    ttft_before_s: float | None
    request_s: float | None
    """Median time from sending a request to its end, before: what is seen comes in such steps."""
    enough: bool
    """Enough requests were seen before, and after, to say so."""


def recovery_of(seen: Sequence[Seen], began_s: float, ended_s: float, until_s: float) -> Recovery:
    """How an arm came out of an event that lasted from `began_s` to `ended_s`.

    Formula: recovered at the first moment t >= the event's end such that of the requests sent from
    t on the first 4 were answered, with a median TTFT and a median time per token <= 1.5 times the
    median before + 0.1 s.
    Undefined: `recovered_s` when no such moment was seen up to `until_s`.
    """
    rows = sorted(seen)
    before = [row for row in rows if row.end_s < began_s and row.error is None]
    during = [row for row in rows if row.end_s >= began_s and row.sent_s < until_s]
    # A request that was under way when the event began is part of what the event did.
    after = [row for row in rows if row.sent_s >= ended_s]
    usual_ttft, usual_pace = _median(_ttft(before)), _median(_pace(before))
    at = _as_before(after, usual_ttft, usual_pace) if usual_ttft is not None else None
    end_s = until_s if at is None else at
    hit = [row for row in during if row.sent_s <= end_s]
    errors = Counter(row.error for row in hit if row.error is not None)
    waits = _ttft(hit)
    return Recovery(
        requests=len(hit),
        failed=sum(errors.values()),
        errors=tuple(sorted(errors.items())),
        recovered_s=None if at is None else max(0.0, at - ended_s),
        watched_s=max(0.0, until_s - ended_s),
        overshoot=max(waits) / usual_ttft if waits and usual_ttft else None,
        ttft_before_s=usual_ttft,
        request_s=_median([row.end_s - row.sent_s for row in before]),
        enough=len(before) >= BEFORE_MIN and len(after) >= HOLD,
    )


def _as_before(after: Sequence[Seen], usual_ttft: float, usual_pace: float | None) -> float | None:
    for start in range(len(after) - HOLD + 1):
        run = after[start : start + HOLD]
        if any(row.error is not None for row in run):
            continue
        ttft, pace = _median(_ttft(run)), _median(_pace(run))
        if ttft is None or ttft > SLOWER * usual_ttft + SLACK_S:
            continue
        if pace is not None and usual_pace is not None and pace > SLOWER * usual_pace + SLACK_S:
            continue
        return run[0].sent_s
    return None


def _ttft(rows: Sequence[Seen]) -> list[float]:
    return [row.first_s - row.sent_s for row in rows if row.first_s is not None]


def _pace(rows: Sequence[Seen]) -> list[float]:
    """Seconds per token after the first."""
    return [
        (row.end_s - row.first_s) / (row.tokens - 1)
        for row in rows
        if row.first_s is not None and row.tokens is not None and row.tokens > 1
    ]


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def much_longer(ours: Recovery, base: Recovery) -> bool:
    """Whether the speculative arm took longer by what nobody would call chance: twice as long, and
    5 s and the time of two requests more."""
    if not ours.enough or not base.enough:
        return False
    if ours.recovered_s is None:
        return base.recovered_s is not None
    theirs = math.inf if base.recovered_s is None else base.recovered_s
    return ours.recovered_s > 2 * theirs + 5.0 + 2 * (ours.request_s or 0.0)
