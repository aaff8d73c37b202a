"""How latencies are distributed, in few numbers: quantiles at fixed levels, not means alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from orchestrator.measure.latency import latency_of
from orchestrator.records import BlockRecord

LEVELS = (0.0, 0.02, 0.05, *(step / 20 for step in range(2, 19)), 0.95, 0.98, 0.99, 1.0)
"""Where the quantiles lie: the ends closer, since tails are what one looks for."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Quantiles of `count` values at `LEVELS`, linear between order statistics. Shape: (24,)"""

    count: int
    quantiles: tuple[float, ...]


def distributions_of(blocks: Sequence[BlockRecord]) -> Mapping[str, Distribution]:
    """By METRICS name, over all completed requests of `blocks`; per request one value, `itl_s` all
    gaps pooled.

    Unit: s
    Undefined (name absent): no request defines it.
    """
    latencies = [
        latency_of(request) for block in blocks for request in block.requests if request.completed
    ]
    pooled: dict[str, Iterable[float | None]] = {
        "ttft_s": (latency.ttft_s for latency in latencies),
        "tpot_s": (latency.tpot_s for latency in latencies),
        "e2e_s": (latency.e2e_s for latency in latencies),
        "itl_s": chain.from_iterable(latency.itl_s or () for latency in latencies),
    }
    found = {name: _distribution(values) for name, values in pooled.items()}
    return {name: distribution for name, distribution in found.items() if distribution is not None}


def _distribution(values: Iterable[float | None]) -> Distribution | None:
    known = np.fromiter((value for value in values if value is not None), dtype=np.float64)
    if known.size == 0:
        return None
    return Distribution(int(known.size), tuple(float(q) for q in np.quantile(known, LEVELS)))
