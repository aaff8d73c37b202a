"""The figures of one block: what a block record says, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from orchestrator.measure.acceptance import (
    Acceptance,
    acceptance_between,
    counter_difference,
)
from orchestrator.measure.latency import RequestLatency, latency_of, send_lag_s
from orchestrator.measure.slo import SloBounds, goodput_rps, goodput_tok_per_s, slo_attainment
from orchestrator.measure.summary import STATISTICS, Summary, summarize, with_statistic
from orchestrator.records import Arm, BlockRecord, RequestRecord

LATENCIES = ("ttft_s", "ttft_from_due_s", "tpot_s", "e2e_s", "itl_s", "icl_s")

RequestKey = tuple[str, int]
"""(request_id, turn): the same in both arms of a pair."""


def request_key(request: RequestRecord) -> RequestKey:
    return request.request_id, request.turn


@dataclass(frozen=True, slots=True)
class BlockFigures:
    """Numbers of one block; None where undefined. Latencies are those of completed requests."""

    arm: Arm
    pair_index: int
    position: int
    simulated: bool
    duration_s: float
    requests_planned: int
    requests_completed: int
    failures: Mapping[str, int]
    """How many requests ended in each class of error."""
    latencies: Mapping[str, Summary]
    """By METRICS name (`ttft_s`, ...); a name is absent where no request defines it. Per request
    one value, except `itl_s` and `icl_s`: all gaps pooled."""
    input_tokens: int | None
    output_tokens: int | None
    """Of completed requests; None when the server did not say for one of them."""
    mean_output_tokens: float | None
    """Over the requests whose latencies are summarized."""
    output_tok_per_s: float | None
    acceptance: Acceptance | None
    preemptions: float | None
    prefix_cache_hit_rate: float | None
    telemetry: Mapping[str, tuple[float, float]]
    """(mean, max) of each sampled key."""
    send_lag_p99_s: float | None
    slo_attainment: float | None
    goodput_rps: float | None
    goodput_tok_per_s: float | None
    """Tokens delivered within every bound; all of them without an SLO."""

    def mean(self, name: str) -> float | None:
        """Mean of a latency; None where undefined."""
        summary = self.latencies.get(name)
        return None if summary is None else summary.mean

    def as_metrics(self) -> dict[str, float]:
        """Flat, under METRICS.md's names; what is undefined is left out.

        `tpot_s` becomes `tpot_mean_s`, `tpot_p95_s`, ...; `per_position_acceptance_rate[i]` becomes
        `per_position_acceptance_rate_<i>`, likewise `conditional_acceptance_rate_<i>`.
        """
        return {name: float(value) for name, value in self._named() if value is not None}

    def _named(self) -> Iterator[tuple[str, float | None]]:
        yield "duration_s", self.duration_s
        yield "requests_planned", self.requests_planned
        yield "requests_completed", self.requests_completed
        yield "requests_failed", self.requests_planned - self.requests_completed
        for failure, count in self.failures.items():
            yield f"requests_failed_{failure}", count
        for name, summary in self.latencies.items():
            for statistic in STATISTICS:
                yield with_statistic(name, statistic), summary.value(statistic)
        yield "input_tokens", self.input_tokens
        yield "output_tokens", self.output_tokens
        yield with_statistic("output_tokens", "mean"), self.mean_output_tokens
        yield "output_tok_per_s", self.output_tok_per_s
        yield from _named_acceptance(self.acceptance)
        yield "preemptions", self.preemptions
        yield "prefix_cache_hit_rate", self.prefix_cache_hit_rate
        yield with_statistic("send_lag_s", "p99"), self.send_lag_p99_s
        yield "slo_attainment", self.slo_attainment
        yield "goodput_rps", self.goodput_rps
        yield "goodput_tok_per_s", self.goodput_tok_per_s
        for key, (mean, maximum) in self.telemetry.items():
            yield with_statistic(key, "mean"), mean
            yield with_statistic(key, "max"), maximum


def _named_acceptance(acceptance: Acceptance | None) -> Iterator[tuple[str, float | None]]:
    if acceptance is None:
        return
    yield "drafts", acceptance.drafts
    yield "draft_tokens", acceptance.draft_tokens
    yield "accepted_tokens", acceptance.accepted_tokens
    yield "acceptance_rate", acceptance.acceptance_rate
    yield "acceptance_length", acceptance.acceptance_length
    for i, rate in enumerate(acceptance.per_position_acceptance_rate or ()):
        yield f"per_position_acceptance_rate_{i}", rate
    for i, conditional in enumerate(acceptance.conditional_acceptance_rate or ()):
        yield f"conditional_acceptance_rate_{i}", conditional


def block_figures(
    block: BlockRecord,
    slo: SloBounds | None = None,
    *,
    latencies_of: Collection[RequestKey] | None = None,
) -> BlockFigures:
    """The figures of `block`.

    Formula: output_tok_per_s = output tokens of completed requests / duration_s
    Undefined: a figure whose inputs the server or the client did not provide; `output_tok_per_s`
        also when nothing completed. Failed requests are counted by class, never averaged.
    `latencies_of` restricts latencies and mean output length to some requests, e.g. to those that
    completed in both arms of a pair; counts and throughput stay those of the whole block.
    """
    completed = [request for request in block.requests if request.completed]
    chosen = [r for r in completed if latencies_of is None or request_key(r) in latencies_of]
    output_tokens = _total(request.output_tokens for request in completed)
    chosen_tokens = _total(request.output_tokens for request in chosen)
    bounds = slo or SloBounds()
    before, after = block.counters_before, block.counters_after
    return BlockFigures(
        arm=block.arm,
        pair_index=block.pair_index,
        position=block.position,
        simulated=block.simulated,
        duration_s=block.duration_s,
        requests_planned=len(block.requests),
        requests_completed=len(completed),
        failures=dict(Counter(str(r.error) for r in block.requests if r.error is not None)),
        latencies=_latencies([latency_of(request) for request in chosen]),
        input_tokens=_total(request.input_tokens for request in completed),
        output_tokens=output_tokens,
        mean_output_tokens=None if chosen_tokens is None else chosen_tokens / len(chosen),
        output_tok_per_s=(
            None
            if output_tokens is None or block.duration_s <= 0
            else output_tokens / block.duration_s
        ),
        acceptance=None if block.arm == "baseline" else acceptance_between(before, after),
        preemptions=(
            None
            if before is None or after is None
            else counter_difference(before.preemptions, after.preemptions)
        ),
        prefix_cache_hit_rate=_prefix_cache_hit_rate(block),
        telemetry=_telemetry(block),
        send_lag_p99_s=_p99(map(send_lag_s, block.requests)),
        slo_attainment=slo_attainment(block.requests, bounds),
        goodput_rps=goodput_rps(block.requests, bounds, block.duration_s),
        goodput_tok_per_s=goodput_tok_per_s(block.requests, bounds, block.duration_s),
    )


def _total(counts: Iterator[int | None]) -> int | None:
    known = list(counts)
    if not known or any(count is None for count in known):
        return None
    return sum(count for count in known if count is not None)


def _latencies(requests: list[RequestLatency]) -> dict[str, Summary]:
    values: dict[str, list[float]] = {
        name: [v for v in (getattr(r, name) for r in requests) if v is not None]
        for name in ("ttft_s", "ttft_from_due_s", "tpot_s", "e2e_s")
    }
    values["itl_s"] = list(chain.from_iterable(r.itl_s or () for r in requests))
    values["icl_s"] = list(chain.from_iterable(r.icl_s or () for r in requests))
    summaries = {name: summarize(values[name]) for name in LATENCIES}
    return {name: summary for name, summary in summaries.items() if summary is not None}


def _prefix_cache_hit_rate(block: BlockRecord) -> float | None:
    before, after = block.counters_before, block.counters_after
    if before is None or after is None:
        return None
    queries = counter_difference(before.prefix_cache_queries, after.prefix_cache_queries)
    hits = counter_difference(before.prefix_cache_hits, after.prefix_cache_hits)
    return hits / queries if hits is not None and queries else None


LIMITS = ("_total_bytes", "_limit")
"""How keys of samples end that say where a resource ends: no figures of a block."""


def _telemetry(block: BlockRecord) -> dict[str, tuple[float, float]]:
    series: dict[str, list[float]] = {}
    for sample in block.samples:
        for key, value in sample.values.items():
            if not key.partition("/")[0].endswith(LIMITS):
                series.setdefault(key, []).append(value)
    return {key: (sum(v) / len(v), max(v)) for key, v in sorted(series.items())}


def _p99(values: Iterator[float | None]) -> float | None:
    summary = summarize(value for value in values if value is not None)
    return None if summary is None else summary.p99
