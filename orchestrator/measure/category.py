"""What a category of prompts gets out of speculation, seen from the client."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.measure.latency import token_chunks, tpot_s
from orchestrator.records import BlockRecord, RequestRecord


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """One category of prompts in one arm; None where undefined."""

    requests: int
    """That completed."""
    tokens_per_chunk: float | None
    """Output tokens / chunks, the first chunk (it comes from the prefill) left out. Where the
    server sends every step as a chunk of its own, this is the acceptance length of the category,
    which the engine's counters do not tell."""
    tpot_s: float | None
    """Mean over requests."""


def categories_of(blocks: Sequence[BlockRecord]) -> Mapping[str, CategoryFigures]:
    """By category, over all completed requests of `blocks`.

    Formula: tokens_per_chunk = sum of tokens after a request's first chunk / number of such chunks
    Undefined: the server does not say how many tokens a chunk carries; answers of one chunk.
    """
    by_category: dict[str, list[RequestRecord]] = defaultdict(list)
    for block in blocks:
        for request in block.requests:
            if request.completed:
                by_category[request.category].append(request)
    return {name: _figures(requests) for name, requests in sorted(by_category.items())}


def _figures(requests: Sequence[RequestRecord]) -> CategoryFigures:
    tokens, chunks, known = 0, 0, True
    for request in requests:
        for _, count in token_chunks(request)[1:]:
            known = known and count is not None
            tokens += count or 0
            chunks += 1
    latencies = [value for value in map(tpot_s, requests) if value is not None]
    return CategoryFigures(
        requests=len(requests),
        tokens_per_chunk=tokens / chunks if known and chunks else None,
        tpot_s=sum(latencies) / len(latencies) if latencies else None,
    )
