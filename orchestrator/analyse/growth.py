"""How fast requests in flight, and the wait for the first token, grow while requests come.

A queue remembers: what is in flight now was mostly in flight a moment ago. So the points of its
curve are far from independent, and the textbook interval of a fitted line's slope, which treats
them so, is many times too narrow. What is independent (a queue under full load is a random walk)
are the *changes* over stretches that do not overlap. The growth here is the mean of those changes
and its interval is their t-interval; a stable queue, whose changes undo each other, only makes the
interval wider than it need be. A block starts from an empty server, and even a queue at exactly
full load grows from there for a while; that much is taken off before anything is called growth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from orchestrator.measure.latency import ttft_s
from orchestrator.records import RequestError, RequestRecord

FloatArray: TypeAlias = NDArray[np.float64]

SETTLING_SHARE = 0.25
"""The first quarter of a block fills an empty server, which is no sign of anything."""
EARLY_SHARE = 0.125
"""The requests whose answers tell how long filling takes: later ones may already have queued."""
CHANGES_WANTED = 10
"""Stretches are as long as possible with this many of them in all."""
CHANGES_MIN = 5
STRETCH_MIN = 4
"""Requests in a stretch."""
OVERLAP = math.sqrt(1.5)
"""Changes between neighbouring means of a random walk correlate by 1/4: sqrt(1 + 2/4)."""
HALF_NORMAL_MEAN = math.sqrt(2 / math.pi)


@dataclass(frozen=True, slots=True)
class Timeline:
    """When the requests of a block came, got their first token, and left; in order of coming.

    Shape: three arrays of one length. `left_s` is inf for what never left (cancelled, or still in
    flight), `first_token_s` NaN where none came.
    """

    came_s: FloatArray
    first_token_s: FloatArray
    left_s: FloatArray

    @property
    def requests(self) -> int:
        return int(self.came_s.size)


@dataclass(frozen=True, slots=True)
class Growth:
    """A rate of growth with the lower end of its one-sided interval."""

    rate: float
    low: float
    changes: int
    """How many stretches it rests on."""


def timeline_of(requests: Sequence[RequestRecord]) -> Timeline:
    """The timeline of a block's requests; those that were never sent are left out."""
    rows = [
        (
            request.sent_s,
            math.nan if (wait := ttft_s(request)) is None else request.sent_s + wait,
            # The client gave up, the server did not answer: it never left by itself.
            math.inf
            if request.end_s is None or request.error is RequestError.CANCELLED
            else request.end_s,
        )
        for request in requests
        if request.sent_s is not None
    ]
    table = np.array(sorted(rows), dtype=np.float64).reshape(-1, 3)
    return Timeline(table[:, 0], table[:, 1], table[:, 2])


def growth_in_flight(timelines: Sequence[Timeline], confidence: float) -> Growth | None:
    """Share of the requests that come and do not leave.

    Formula: N_k = requests in flight just after request k came; over stretches of b requests from
        request m on, d = (N_{k+b} - N_k) / b. rate = mean of d;
        low = rate - t(confidence, changes - 1) * s / sqrt(changes) - critical,
        critical = sqrt(2 / pi) * s * sqrt(b) * (sqrt(n) - sqrt(m)) / (n - m): the growth of a queue
        at load 1 that was empty at request 0, a random walk that cannot go below 0.
    Unit: requests a request; at load rho > 1 the rate tends to 1 - 1/rho = 1 - achieved/offered
    Undefined: fewer than 5 stretches of 4 requests after the server has filled.
    """
    stretched = _stretches(timelines, at_least=1)
    changes, critical = [], []
    for timeline, edges in stretched:
        left = np.sort(timeline.left_s)
        in_flight = edges + 1 - np.searchsorted(left, timeline.came_s[edges], side="right")
        changes.extend((np.diff(in_flight) / np.diff(edges)).tolist())
        m, n = int(edges[0]), timeline.requests
        stretch = (edges[-1] - m) / (edges.size - 1)
        critical.append(math.sqrt(stretch) * (math.sqrt(n) - math.sqrt(m)) / (n - m))
    per_spread = HALF_NORMAL_MEAN * math.fsum(critical) / max(1, len(critical))
    return _growth(changes, confidence, critical=per_spread)


def growth_of_ttft(timelines: Sequence[Timeline], confidence: float) -> Growth | None:
    """By how much the wait for the first token grows while requests come.

    Formula: W_j = mean TTFT of the requests that came in stretch j, t_j their mean time;
        d = (W_{j+1} - W_j) / (t_{j+1} - t_j); rate = mean of d;
        low = rate - sqrt(1.5) * t(confidence, changes - 1) * s / sqrt(changes)
    Unit: s/s; at load rho > 1 with one queue it tends to rho - 1
    Undefined: too few stretches, or too few with a first token.
    """
    changes: list[float] = []
    for timeline, edges in _stretches(timelines, at_least=2):
        means = []
        for start, stop in itertools.pairwise(edges.tolist()):
            waits = timeline.first_token_s[start:stop] - timeline.came_s[start:stop]
            known = np.isfinite(waits)
            if known.any():
                came = timeline.came_s[start:stop][known]
                means.append((float(came.mean()), float(waits[known].mean())))
        changes.extend(
            (wait - before) / (at - then)
            for (then, before), (at, wait) in itertools.pairwise(means)
            if at > then
        )
    return _growth(changes, confidence, widen=OVERLAP)


def _growth(
    changes: Sequence[float], confidence: float, *, widen: float = 1.0, critical: float = 0.0
) -> Growth | None:
    count = len(changes)
    if count < CHANGES_MIN:
        return None
    spread = float(np.std(changes, ddof=1))
    rate = math.fsum(changes) / count
    reach = widen * float(stdtrit(count - 1, confidence)) / math.sqrt(count) + critical
    return Growth(rate, rate - reach * spread, count)


def _stretches(
    timelines: Sequence[Timeline], *, at_least: int
) -> list[tuple[Timeline, NDArray[np.int64]]]:
    """Each block's settled part, cut: (timeline, the indices of the requests at the cuts)."""
    settled = [(t, _settled(t)) for t in timelines]
    usable = [(t, m) for t, m in settled if t.requests - 1 - m >= at_least * STRETCH_MIN]
    each = max(at_least, math.ceil(CHANGES_WANTED / max(1, len(usable))))
    cut = []
    for timeline, first in usable:
        last = timeline.requests - 1
        stretches = min(each, (last - first) // STRETCH_MIN)
        edges = np.linspace(first, last, stretches + 1).astype(np.int64)
        cut.append((timeline, edges))
    return cut


def _settled(timeline: Timeline) -> int:
    """Index of the first request that came after the server had filled.

    Rule: after the first quarter of the requests, and after twice the median answer of the first
    eighth of them (at least four).
    """
    n = timeline.requests
    if n == 0:
        return 0
    early = slice(0, max(4, math.ceil(EARLY_SHARE * n)))
    answer_s = float(np.median(timeline.left_s[early] - timeline.came_s[early]))
    filled = int(np.searchsorted(timeline.came_s, timeline.came_s[0] + 2 * answer_s))
    return max(math.ceil(SETTLING_SHARE * n), filled)
