"""Queues with a known load, written out: what a server does to requests that come."""

from __future__ import annotations

import heapq
from typing import Literal

import numpy as np

from orchestrator.analyse.growth import Timeline
from orchestrator.records import RequestError, RequestRecord


def request(
    i: int,
    sent_s: float,
    first_s: float | None,
    end_s: float | None,
    *,
    error: RequestError | None = None,
    http_status: int | None = None,
) -> RequestRecord:
    """A request of two tokens."""
    chunks = () if first_s is None or end_s is None else (first_s, end_s)
    return RequestRecord(
        request_id=f"r{i}",
        prompt_id=f"p{i}",
        category="any",
        turn=0,
        offset_s=sent_s,
        sent_s=sent_s,
        chunk_s=chunks,
        chunk_tokens=tuple(1 for _ in chunks),
        end_s=end_s,
        input_tokens=8,
        output_tokens=len(chunks),
        max_tokens=2,
        finish_reason=None if error else "length",
        text="",
        error=error,
        http_status=http_status,
    )


def queue(
    seed: int,
    requests: int,
    load: float,
    *,
    servers: int = 1,
    service: Literal["exponential", "constant"] = "exponential",
) -> Timeline:
    """First come, first served; Poisson arrivals, one a second; load = arrivals / capacity.

    The first token comes when a tenth of the service is done.
    """
    rng = np.random.default_rng(seed)
    came = np.cumsum(rng.exponential(1.0, requests))
    work = np.ones(requests) if service == "constant" else rng.exponential(1.0, requests)
    free = [0.0] * servers
    first, left = np.empty(requests), np.empty(requests)
    for i, (at, seconds) in enumerate(zip(came, load * servers * work, strict=True)):
        start = max(at, heapq.heappop(free))
        first[i], left[i] = start + seconds / 10, start + seconds
        heapq.heappush(free, left[i])
    return Timeline(came, first, left)


def records(timeline: Timeline) -> list[RequestRecord]:
    rows = zip(timeline.came_s, timeline.first_token_s, timeline.left_s, strict=True)
    return [request(i, *map(float, row)) for i, row in enumerate(rows)]
