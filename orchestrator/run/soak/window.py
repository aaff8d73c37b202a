"""The figures of one window: added up while requests end, in memory that does not grow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ddsketch import LogCollapsingLowestDenseDDSketch

from orchestrator.measure.acceptance import acceptance_between, counter_difference
from orchestrator.measure.latency import e2e_s, icl_s, token_chunks, token_count, tpot_s, ttft_s
from orchestrator.records import CounterSnapshot, RequestRecord, Sample

ACCURACY = 0.005
"""Relative error of a quantile, guaranteed (Masson et al. 2019, DDSketch, VLDB 12)."""
BINS = 2048
QUANTILES = (0.5, 0.95, 0.99)
LATENCIES = {"ttft": ttft_s, "tpot": tpot_s, "e2e": e2e_s}


class Latencies:
    """Quantile sketches of one arm's latencies."""

    def __init__(self) -> None:
        self._sketches = {
            name: LogCollapsingLowestDenseDDSketch(ACCURACY, BINS) for name in LATENCIES
        }

    def add(self, record: RequestRecord) -> None:
        for name, of in LATENCIES.items():
            value = of(record)
            if value is not None and value >= 0:
                self._sketches[name].add(value)

    def quantiles(self) -> dict[str, float]:
        """`ttft_p50_s`, …; a latency that no request had is left out."""
        return {
            f"{name}_p{round(100 * q)}_s": float(value)
            for name, sketch in self._sketches.items()
            for q in QUANTILES
            if sketch.count and (value := sketch.get_quantile_value(q)) is not None
        }


class WindowOfArm:
    """What one arm did in one window."""

    def __init__(self) -> None:
        self._latencies = Latencies()
        self._requests = self._errors = self._received = 0
        self._longest_gap_s: float | None = None
        self._by_category: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._uncounted = False

    def add(self, records: Iterable[RequestRecord]) -> None:
        for record in records:
            self._requests += 1
            self._received += token_count(record) or 0
            if not record.completed:
                self._errors += 1
                continue
            self._latencies.add(record)
            gaps = icl_s(record)
            if gaps:
                self._longest_gap_s = max(self._longest_gap_s or 0.0, max(gaps))
            counted = self._by_category[record.category]
            for _, tokens in token_chunks(record)[1:]:
                self._uncounted = self._uncounted or tokens is None
                counted[0] += tokens or 0
                counted[1] += 1

    def figures(
        self,
        seconds: float,
        before: CounterSnapshot | None,
        after: CounterSnapshot | None,
        samples: Sequence[Sample],
    ) -> dict[str, float]:
        """By name; what was not observed is left out.

        Formula: output_tok_per_s = tokens of the requests that ended / seconds (the server's
        counter, where there is one in the same life); acceptance_length/CATEGORY = tokens per chunk
        after the first.
        """
        found: dict[str, float | None] = {
            "requests": float(self._requests),
            "errors": float(self._errors),
            "received_tokens": float(self._received),
            "longest_gap_s": self._longest_gap_s,
            **self._latencies.quantiles(),
        }
        counted = _counted(before, after)
        found["counted_tokens"] = counted
        tokens = self._received if counted is None else counted
        found["output_tok_per_s"] = tokens / seconds if seconds > 0 and tokens else None
        found |= _accepted(before, after)
        speculates = found.get("acceptance_rate") is not None
        if speculates and not self._uncounted:
            found |= {
                f"acceptance_length/{name or 'none'}": tokens / chunks
                for name, (tokens, chunks) in self._by_category.items()
                if chunks
            }
        found |= _gauges(after)
        found |= _medians(samples)
        return {name: float(f"{value:.6g}") for name, value in found.items() if value is not None}


def same_life(before: CounterSnapshot | None, after: CounterSnapshot | None) -> bool:
    return before is not None and after is not None and before.replica_ids == after.replica_ids


def _counted(before: CounterSnapshot | None, after: CounterSnapshot | None) -> float | None:
    if before is None or after is None or not same_life(before, after):
        return None
    return counter_difference(before.generation_tokens, after.generation_tokens)


def _accepted(
    before: CounterSnapshot | None, after: CounterSnapshot | None
) -> dict[str, float | None]:
    found = acceptance_between(before, after) if same_life(before, after) else None
    if found is None:
        return {}
    positions = found.per_position_acceptance_rate or ()
    return {
        "acceptance_rate": found.acceptance_rate,
        "acceptance_length": found.acceptance_length,
        **{f"acceptance_at/{i}": rate for i, rate in enumerate(positions, 1)},
        "counters_broken": float(counters_broken(before, after)) or None,
    }


def counters_broken(before: CounterSnapshot | None, after: CounterSnapshot | None) -> bool:
    """Whether one life's counters contradict each other: more accepted than drafted, positions
    that do not add up, or one that went back."""
    if before is None or after is None or not same_life(before, after):
        return False
    for name in ("drafts", "draft_tokens", "accepted_tokens", "generation_tokens"):
        first, last = getattr(before, name), getattr(after, name)
        if first is not None and last is not None and last < first:
            return True
    drafted = counter_difference(before.draft_tokens, after.draft_tokens)
    accepted = counter_difference(before.accepted_tokens, after.accepted_tokens)
    if drafted is not None and accepted is not None and accepted > drafted:
        return True
    positions, total = after.accepted_per_position, after.accepted_tokens
    # A step may be counted between two lines of a page that is being written.
    return (
        positions is not None
        and total is not None
        and abs(sum(positions) - total) > max(64.0, 0.001 * total)
    )


def _gauges(after: CounterSnapshot | None) -> dict[str, float | None]:
    return {} if after is None else {"kv_cache_usage": after.kv_cache_usage}


def _medians(samples: Sequence[Sample]) -> Mapping[str, Any]:
    """Of what telemetry saw in the window; gauges that the probe reads are the probe's."""
    seen: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        for name, value in sample.values.items():
            seen[name].append(value)
    seen.pop("kv_cache_usage", None)
    # Nothing resident: the processes were gone, or not to be seen.
    seen["process_rss_bytes"] = [value for value in seen["process_rss_bytes"] if value > 0]
    return {name: float(np.median(values)) for name, values in seen.items() if values}
