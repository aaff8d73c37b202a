"""Latencies of one request, from the times at which its chunks arrived."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from orchestrator.records import RequestRecord


@dataclass(frozen=True, slots=True)
class RequestLatency:
    """All latencies of one request, in seconds; None (or empty) where undefined."""

    ttft_s: float | None
    ttft_from_due_s: float | None
    tpot_s: float | None
    itl_s: tuple[float, ...] | None
    icl_s: tuple[float, ...] | None
    e2e_s: float | None
    send_lag_s: float | None


def latency_of(request: RequestRecord) -> RequestLatency:
    """Every latency of `request` at once."""
    return RequestLatency(
        ttft_s=ttft_s(request),
        ttft_from_due_s=ttft_from_due_s(request),
        tpot_s=tpot_s(request),
        itl_s=itl_s(request),
        icl_s=icl_s(request),
        e2e_s=e2e_s(request),
        send_lag_s=send_lag_s(request),
    )


def token_chunks(request: RequestRecord) -> tuple[tuple[float, int | None], ...]:
    """Chunks that carry tokens: (arrival, how many); how many is None where the server is silent.

    A chunk whose usage did not grow carries no token and is left out.
    """
    if request.chunk_tokens is None:
        return tuple((at, None) for at in request.chunk_s)
    return tuple(
        [
            (at, count)
            for at, count in zip(request.chunk_s, request.chunk_tokens, strict=True)
            if count > 0
        ]
    )


def token_span(request: RequestRecord) -> tuple[float, float] | None:
    """Arrival of the first and of the last chunk that carries a token; None: no token came."""
    at, counts = request.chunk_s, request.chunk_tokens
    if counts is None:
        return (at[0], at[-1]) if at else None
    first = next((i for i, count in enumerate(counts) if count > 0), None)
    if first is None:
        return None
    last = next(i for i in range(len(counts) - 1, -1, -1) if counts[i] > 0)
    return at[first], at[last]


def token_count(request: RequestRecord) -> int | None:
    """Output tokens by the server's `usage`; else the sum of its chunks; else None."""
    if request.output_tokens is not None:
        return request.output_tokens
    if request.chunk_tokens is not None:
        return sum(request.chunk_tokens)
    return None


def ttft_s(request: RequestRecord) -> float | None:
    """Time to first token.

    Formula: first chunk that carries a token - sent_s
    Unit: s
    Undefined: no token came, or it was never sent.
    """
    span = token_span(request)
    if span is None or request.sent_s is None:
        return None
    return span[0] - request.sent_s


def ttft_from_due_s(request: RequestRecord) -> float | None:
    """Time to first token from the planned time: no coordinated omission.

    Formula: first chunk that carries a token - offset_s
    Unit: s
    Undefined: no token came, or a closed loop (nothing was planned).
    """
    span = token_span(request)
    if span is None or request.offset_s is None:
        return None
    return span[0] - request.offset_s


def tpot_s(request: RequestRecord) -> float | None:
    """Time per output token after the first.

    Formula: (last token - first token) / (output tokens - 1)
    Unit: s
    Undefined: fewer than 2 tokens, or their number is not known.
    """
    span = token_span(request)
    tokens = token_count(request)
    if span is None or tokens is None or tokens < 2:
        return None
    return (span[1] - span[0]) / (tokens - 1)


def itl_s(request: RequestRecord) -> tuple[float, ...] | None:
    """Gaps between successive tokens.

    Formula: k tokens in one chunk = one gap (from the chunk before) and k - 1 zeros;
        so mean(itl) = tpot.
    Unit: s
    Shape: (output tokens - 1,)
    Undefined: fewer than 2 tokens; the server does not say how many tokens a chunk carries, or its
        chunks do not add up to its `usage`.
    """
    if request.chunk_tokens is None:
        return None
    tokens = token_count(request)
    if tokens is None or tokens < 2 or sum(request.chunk_tokens) != tokens:
        return None
    gaps: list[float] = []
    before: float | None = None
    for at, count in zip(request.chunk_s, request.chunk_tokens, strict=True):
        if count < 1:
            continue
        if before is not None:
            gaps.append(at - before)
        if count > 1:
            gaps.extend([0.0] * (count - 1))
        before = at
    return tuple(gaps)


def icl_s(request: RequestRecord) -> tuple[float, ...] | None:
    """Gaps between successive chunks: what a reader sees. Never compared between arms per token.

    Formula: chunk_s[i] - chunk_s[i - 1]
    Unit: s
    Shape: (chunks - 1,)
    Undefined: fewer than 2 chunks.
    """
    if len(request.chunk_s) < 2:
        return None
    return tuple([b - a for a, b in pairwise(request.chunk_s)])


def e2e_s(request: RequestRecord) -> float | None:
    """End-to-end latency.

    Formula: last chunk - sent_s
    Unit: s
    Undefined: the request failed, or no chunk came.
    """
    if not request.completed or not request.chunk_s or request.sent_s is None:
        return None
    return request.chunk_s[-1] - request.sent_s


def send_lag_s(request: RequestRecord) -> float | None:
    """How late the request was sent.

    Formula: sent_s - offset_s
    Unit: s
    Undefined: a closed loop, or it was never sent.
    """
    if request.offset_s is None or request.sent_s is None:
        return None
    return request.sent_s - request.offset_s
