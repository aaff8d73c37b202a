"""Whether a block may count, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from orchestrator.measure.latency import send_lag_s
from orchestrator.measure.summary import summarize
from orchestrator.records import BlockRecord, CounterSnapshot, InvalidReason


@dataclass(frozen=True, slots=True)
class ValidityBounds:
    """Past these a block does not count; a bound of None is not checked."""

    send_lag_p99_s: float | None = 0.010
    loop_lag_p99_s: float | None = 0.020
    """Late wake-ups of the client's event loop: every arrival time may be wrong by as much."""
    client_cpu_fraction: float | None = 0.8
    host_foreign_cpu_fraction: float | None = 0.5
    """Cores kept busy by neither client nor engine, mean over the block; 1.0 is a whole core."""
    counter_tolerance: float = 0.02
    counter_tolerance_tokens: float = 8.0
    """Allowed difference between the generation counter and `usage`: the larger of the two."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a block is invalid, and the value and bound in a sentence."""

    reason: InvalidReason
    sentence: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.sentence}"


def invalid_reasons(
    block: BlockRecord,
    bounds: ValidityBounds | None = None,
    *,
    fixed_length: bool = False,
) -> tuple[Finding, ...]:
    """Every reason why `block` must not be averaged in; empty = valid.

    `fixed_length`: the workload orders exactly `max_tokens` (so an answer of another length is a
    reason). What was not observed is not held against a block.
    """
    limits = bounds or ValidityBounds()
    checks: tuple[Callable[[BlockRecord, ValidityBounds], Iterator[Finding]], ...] = (
        _nothing_completed,
        _saturated,
        _client,
        _restarted,
        _counters,
        _device,
        _host,
    )
    findings = [finding for check in checks for finding in check(block, limits)]
    if fixed_length:
        findings.extend(_lengths(block))
    return tuple(findings)


def _nothing_completed(block: BlockRecord, _: ValidityBounds) -> Iterator[Finding]:
    if not any(request.completed for request in block.requests):
        yield Finding(
            InvalidReason.NOTHING_COMPLETED,
            f"none of {len(block.requests)} requests completed; at least 1 must",
        )


def _saturated(block: BlockRecord, _: ValidityBounds) -> Iterator[Finding]:
    if block.ended_early is not None:
        done = sum(request.completed for request in block.requests)
        yield Finding(
            InvalidReason.SATURATED,
            f"given up after {done} of {len(block.requests)} requests: {block.ended_early}",
        )


def _client(block: BlockRecord, bounds: ValidityBounds) -> Iterator[Finding]:
    lags = [lag for lag in map(send_lag_s, block.requests) if lag is not None]
    summary = summarize(lags)
    # The client's own figure may cover sends that left no record; the larger one counts. In a
    # closed loop nothing is due at a planned time, so there is no lag.
    p99 = None if summary is None else max(summary.p99, block.client.send_lag_p99_s or 0.0)
    if _over(p99, bounds.send_lag_p99_s):
        yield Finding(
            InvalidReason.CLIENT_LATE,
            f"99 % of requests were sent within {p99:.4f} s of their time; "
            f"the bound is {bounds.send_lag_p99_s:g} s",
        )
    loop = block.client.loop_lag_p99_s
    if _over(loop, bounds.loop_lag_p99_s):
        yield Finding(
            InvalidReason.CLIENT_LOOP_LAG,
            f"the client's event loop woke up to {loop:.4f} s late (p99); "
            f"the bound is {bounds.loop_lag_p99_s:g} s",
        )
    cpu = block.client.cpu_fraction
    if _over(cpu, bounds.client_cpu_fraction):
        yield Finding(
            InvalidReason.CLIENT_CPU,
            f"the client used {cpu:.2f} of a core; the bound is {bounds.client_cpu_fraction:g}",
        )


def _restarted(block: BlockRecord, _: ValidityBounds) -> Iterator[Finding]:
    before, after = block.counters_before, block.counters_after
    if before is None or after is None:
        return
    if before.replica_ids != after.replica_ids:
        yield Finding(
            InvalidReason.ENGINE_RESTARTED,
            f"engine processes were {_names(before)} before the block and {_names(after)} after; "
            "they must be the same",
        )
        return
    for name in COUNTERS:
        was, now = getattr(before, name), getattr(after, name)
        if was is not None and now is not None and now < was:
            yield Finding(
                InvalidReason.ENGINE_RESTARTED,
                f"the counter {name} went back from {was:g} to {now:g}; it can only grow",
            )
            return


GAUGES = frozenset(
    {
        "kv_cache_usage",
        "running_requests",
        "waiting_requests",
        "acceptance_length_gauge",
        "acceptance_rate_gauge",
    }
)
COUNTERS = tuple(
    f.name
    for f in fields(CounterSnapshot)
    if f.name not in GAUGES | {"at_unix_s", "replica_ids", "accepted_per_position", "stages"}
)


def _counters(block: BlockRecord, bounds: ValidityBounds) -> Iterator[Finding]:
    before, after = block.counters_before, block.counters_after
    if before is None or after is None:
        return
    generated = _grown(before.generation_tokens, after.generation_tokens)
    usage = [request.output_tokens for request in block.requests if request.completed]
    # A request that failed or was cut left tokens in the counter that no usage tells of.
    whole = len(usage) == len(block.requests)
    if generated is not None and usage and whole and all(u is not None for u in usage):
        total = sum(u for u in usage if u is not None)
        allowed = max(bounds.counter_tolerance * total, bounds.counter_tolerance_tokens)
        if abs(generated - total) > allowed:
            yield Finding(
                InvalidReason.COUNTERS_INCONSISTENT,
                f"the server counted {generated:g} generated tokens, its usage says {total}; "
                f"they may differ by {allowed:g} (did someone else send requests?)",
            )
    drafted = _grown(before.draft_tokens, after.draft_tokens)
    accepted = _grown(before.accepted_tokens, after.accepted_tokens)
    if drafted is not None and accepted is not None and accepted > drafted:
        yield Finding(
            InvalidReason.COUNTERS_INCONSISTENT,
            f"{accepted:g} draft tokens were accepted of {drafted:g} proposed; "
            "accepted <= proposed must hold",
        )


def _device(block: BlockRecord, _: ValidityBounds) -> Iterator[Finding]:
    for key, reason, what in (
        ("gpu_throttled", InvalidReason.DEVICE_THROTTLED, "the device throttled"),
        ("gpu_clock_changed", InvalidReason.DEVICE_CLOCK_CHANGED, "the device's clock changed"),
        ("gpu_foreign_processes", InvalidReason.DEVICE_SHARED, "foreign processes on the device"),
    ):
        readings = _readings(block, key)
        seen = [value for value in readings if value > 0]
        if seen:
            yield Finding(
                reason,
                f"{what} in {len(seen)} of {len(readings)} samples "
                f"({key} up to {max(seen):g}; the bound is 0)",
            )


def _host(block: BlockRecord, bounds: ValidityBounds) -> Iterator[Finding]:
    readings = _readings(block, "host_foreign_cpu_fraction")
    mean = sum(readings) / len(readings) if readings else None
    if _over(mean, bounds.host_foreign_cpu_fraction):
        yield Finding(
            InvalidReason.HOST_BUSY,
            f"other processes kept {mean:.2f} cores busy on average; "
            f"the bound is {bounds.host_foreign_cpu_fraction:g}",
        )


def _lengths(block: BlockRecord) -> Iterator[Finding]:
    odd = [
        request
        for request in block.requests
        if request.completed
        and request.output_tokens is not None
        and request.output_tokens != request.max_tokens
    ]
    if odd:
        first = odd[0]
        yield Finding(
            InvalidReason.LENGTHS_DIFFER,
            f"{len(odd)} of {len(block.requests)} answers do not have the length ordered: "
            f"{first.request_id} has {first.output_tokens} tokens, {first.max_tokens} were ordered",
        )


def _readings(block: BlockRecord, key: str) -> list[float]:
    return [sample.values[key] for sample in block.samples if key in sample.values]


def _over(value: float | None, bound: float | None) -> bool:
    return value is not None and bound is not None and value > bound


def _grown(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None or after < before else after - before


def _names(snapshot: CounterSnapshot) -> str:
    return ", ".join(snapshot.replica_ids) or "none"
