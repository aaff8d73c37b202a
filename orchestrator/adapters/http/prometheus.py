"""`ports.ServerProbe`: a server's own counters, from the text it shows to Prometheus.

Names, by server:
- vLLM: `vllm/v1/metrics/loggers.py` and `vllm/v1/spec_decode/metrics.py` of vLLM 0.32.
- SGLang: `python/sglang/srt/observability/metrics_collector.py`. It counts verification steps
  (`spec_verify_calls_total`, when a request ends) but neither drafted nor accepted tokens: those
  are only gauges of its last interval (`spec_accept_length`, `spec_accept_rate`), which cannot be
  differenced: they are kept as gauges and not passed off as counters.
- llama.cpp's server: `tools/server/README.md`, started with `--metrics`;
  `llamacpp:spec_decode_*` have vLLM's meaning.
"""

from __future__ import annotations

import math
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from orchestrator.adapters.http.page import get_page
from orchestrator.adapters.http.pool import Tls
from orchestrator.ports import Endpoint
from orchestrator.records import CounterSnapshot, StageSums

_SUMMED: dict[str, tuple[str, ...]] = {
    "drafts": (
        "vllm:spec_decode_num_drafts_total",
        "sglang:spec_verify_calls_total",
        "llamacpp:spec_decode_num_drafts_total",
    ),
    "draft_tokens": (
        "vllm:spec_decode_num_draft_tokens_total",
        "llamacpp:spec_decode_num_draft_tokens_total",
    ),
    "accepted_tokens": (
        "vllm:spec_decode_num_accepted_tokens_total",
        "llamacpp:spec_decode_num_accepted_tokens_total",
    ),
    "prompt_tokens": (
        "vllm:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "llamacpp:prompt_tokens_total",
    ),
    "generation_tokens": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "llamacpp:tokens_predicted_total",
    ),
    "requests_finished": ("vllm:request_success_total", "sglang:num_requests_total"),
    "preemptions": ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total"),
    "prefix_cache_queries": ("vllm:prefix_cache_queries_total",),
    "prefix_cache_hits": ("vllm:prefix_cache_hits_total", "sglang:cached_tokens_total"),
    "running_requests": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "llamacpp:requests_processing",
    ),
    "waiting_requests": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "llamacpp:requests_deferred",
    ),
}
_AVERAGED: dict[str, tuple[str, ...]] = {
    "kv_cache_usage": (
        "vllm:kv_cache_usage_perc",
        "sglang:token_usage",
        "llamacpp:kv_cache_usage_ratio",
    ),
    "acceptance_length_gauge": ("sglang:spec_accept_length",),
    "acceptance_rate_gauge": ("sglang:spec_accept_rate",),
}
_PER_POSITION = (
    "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    "llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
)
_STARTED = "process_start_time_seconds"
_WANTED = frozenset(
    name
    for names in (*_SUMMED.values(), *_AVERAGED.values(), _PER_POSITION, (_STARTED,))
    for name in names
)
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class PrometheusProbe:
    """Reads `base_url` + `/metrics`. One page, so one process: behind a gateway that spreads
    requests over replicas, give every replica an endpoint and add them with `add_replicas`."""

    timeout_s: float = 5.0
    tls: Tls = Tls()  # noqa: RUF009 -- frozen

    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        """None when the page cannot be had, or has nothing on it that is understood."""
        try:
            page = get_page(
                endpoint.base_url.rstrip("/") + "/metrics",
                headers=endpoint.headers,
                timeout_s=self.timeout_s,
                tls=self.tls,
            )
        except OSError:
            return None
        if page.status != 200:
            return None
        seen = read_page(page.text, at_unix_s=time.time())
        if seen is None or endpoint.stages_path is None:
            return seen
        return replace(seen, stages=self._stages(endpoint))

    def _stages(self, endpoint: Endpoint) -> tuple[StageSums, ...] | None:
        """From inside our own deployments; see `serving.stage_timer`."""
        assert endpoint.stages_path is not None
        try:
            page = get_page(
                endpoint.base_url.rstrip("/") + endpoint.stages_path,
                headers=endpoint.headers,
                timeout_s=self.timeout_s,
                tls=self.tls,
            )
        except OSError:
            return None
        said = page.json() if page.status == 200 else None
        if not isinstance(said, dict) or not said.get("workers"):
            return None
        return read_stages(said)


def read_stages(said: dict[str, Any]) -> tuple[StageSums, ...]:
    """Rank 0's sums, from what the engine's page says. Pure. Raises: KeyError for another page."""
    found = []
    for row in said["workers"][0]:
        named = dict(zip(said["columns"], row, strict=True))
        for name in ("requests", "context", "speculation_length"):
            named[name] = int(named[name])
        named["prefill"] = bool(named["prefill"])
        found.append(StageSums(**named))
    return tuple(found)


def read_page(page: str, *, at_unix_s: float) -> CounterSnapshot | None:
    """The counters on one page. Pure.

    Counters and queue lengths are summed over label sets (engines, finish reasons), fractions and
    gauges of acceptance averaged. A value that is missing, not a number, or unreadable is None.
    """
    found: dict[str, list[float]] = defaultdict(list)
    positions: dict[int, float] = defaultdict(float)
    for name, labels, value in _samples(page):
        if name in _PER_POSITION:
            if labels.get("position", "").isdigit():
                positions[int(labels["position"])] += value
        else:
            found[name].append(value)
    values: dict[str, Any] = {}
    for field, names in _SUMMED.items():
        parts = [value for name in names for value in found.get(name, ())]
        if parts:
            values[field] = math.fsum(parts)
    for field, names in _AVERAGED.items():
        parts = [value for name in names for value in found.get(name, ())]
        if parts:
            values[field] = math.fsum(parts) / len(parts)
    if not values and not positions:
        return None
    return CounterSnapshot(
        at_unix_s=at_unix_s,
        replica_ids=tuple(f"{started:.3f}" for started in sorted(found.get(_STARTED, ()))),
        accepted_per_position=_in_order(positions),
        **values,
    )


def add_replicas(snapshots: Iterable[CounterSnapshot]) -> CounterSnapshot | None:
    """One snapshot of several replicas; a value that any of them lacks is None.

    Undefined (None) without replicas. The time is that of the earliest reading.
    """
    parts = list(snapshots)
    if not parts:
        return None
    values: dict[str, Any] = {}
    for field in (*_SUMMED, *_AVERAGED):
        readings = [getattr(part, field) for part in parts]
        if None not in readings:
            total = math.fsum(readings)
            values[field] = total / len(parts) if field in _AVERAGED else total
    per_position = [part.accepted_per_position for part in parts]
    lengths = {None if each is None else len(each) for each in per_position}
    return CounterSnapshot(
        at_unix_s=min(part.at_unix_s for part in parts),
        replica_ids=tuple(sorted(each for part in parts for each in part.replica_ids)),
        accepted_per_position=tuple(
            math.fsum(column) for column in zip(*(each or () for each in per_position), strict=True)
        )
        if len(lengths) == 1 and None not in lengths
        else None,
        **values,
    )


def _samples(page: str) -> Iterable[tuple[str, Mapping[str, str], float]]:
    for line in page.splitlines():
        # Only the lines that are wanted: a page has thousands of histogram buckets.
        name = _NAME.match(line)
        if name is None or name.group() not in _WANTED:
            continue
        try:
            families = list(text_string_to_metric_families(line + "\n"))
        except ValueError:
            continue  # a broken line makes its own value missing, not the page's
        for family in families:
            for sample in family.samples:
                if math.isfinite(sample.value):
                    yield sample.name, sample.labels, sample.value


def _in_order(positions: Mapping[int, float]) -> tuple[float, ...] | None:
    """Positions 0..K−1; None where there is a gap, since which ones are missing is not known."""
    if not positions or sorted(positions) != list(range(len(positions))):
        return None
    return tuple(positions[i] for i in range(len(positions)))
