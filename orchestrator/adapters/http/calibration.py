"""How far this machine's load generator can be trusted, measured against a server of known times.

The null server writes into every chunk when it was sent, and before the first one when the request
had arrived. The error of a figure is what the client says minus what the server's own stamps say:
it holds the way there and back over the loopback, the client's queueing, and nothing else.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.http.health import upper_quantile
from orchestrator.adapters.simulated.null_process import NullProcess, running_null_server
from orchestrator.adapters.simulated.null_schedule import NullSchedule
from orchestrator.adapters.simulated.null_server import read_truth
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt, Timeouts
from orchestrator.plan.trial import LoadPoint, Sampling
from orchestrator.ports import BlockObservation
from orchestrator.records import RequestRecord

STREAMS = (1, 16, 64)
PACE = NullSchedule(ttft_s=0.05, gap_s=0.02)
"""The pace of the streams whose errors are measured: 50 tokens a second each."""
PACED_TOKENS = 32
FULL_LOAD = NullSchedule(ttft_s=0.0, gap_s=0.001)
"""256 streams of 1,000 tokens a second: more than any client in Python takes."""
FULL_LOAD_STREAMS = 256
FULL_LOAD_TOKENS = 256
ERROR_LIMIT_S = 0.001
_PROMPT = Prompt("null", "null", ("A server that computes nothing needs no better prompt. " * 8,))


@dataclass(frozen=True, slots=True)
class StreamErrors:
    """The client's errors with about `streams` streams at once. Undefined: None."""

    streams: int
    requests: int
    failed: int
    ttft_error_p50_s: float | None
    ttft_error_p99_s: float | None
    tpot_error_p50_s: float | None
    tpot_error_p99_s: float | None
    send_lag_p50_s: float | None
    send_lag_p99_s: float | None
    loop_lag_p99_s: float | None
    cpu_fraction: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """One machine's load generator (one process of it).

    `capacity_tok_per_s` is what it took at full load; `capacity_streams` how many streams of
    `stream_tok_per_s` would fill its core: streams / cpu_fraction of the largest paced step, an
    extrapolation. `full_load_cpu_fraction` below about 0.9 means that the server, or other work on
    the machine, was the limit, and the capacity is a lower bound.
    """

    cores: int
    python: str
    errors: tuple[StreamErrors, ...]
    capacity_tok_per_s: float | None
    full_load_cpu_fraction: float | None
    capacity_streams: float | None
    stream_tok_per_s: float


def calibrate(
    seconds: float, on_progress: Callable[[str], None] = lambda text: None
) -> Calibration:
    """Measures for about `seconds` in all, after a warm-up. Raises: ClientFailed, DeploymentError.

    The streams of a step are started one after the other, evenly: if all began at once, the
    server's own queue of arrivals would be taken for the client's error.
    """
    step_s = seconds / (len(STREAMS) + 1)
    with running_null_server() as server, HttpLoadClient(workers=1) as client:
        client.run_block(server.endpoint(), _block(8, LoadPoint("closed", concurrency=4), 8))
        errors = []
        for streams in STREAMS:
            on_progress(f"{streams} streams of {1 / PACE.gap_s:g} tokens/s, {step_s:.0f} s")
            errors.append(stream_errors(streams, _paced(client, server, streams, step_s)))
        on_progress(f"full load, {FULL_LOAD_STREAMS} streams, {step_s:.0f} s")
        full = _full_load(client, server, step_s)
    cpu = errors[-1].cpu_fraction
    return Calibration(
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        errors=tuple(errors),
        capacity_tok_per_s=output_tok_per_s(full),
        full_load_cpu_fraction=full.client.cpu_fraction,
        capacity_streams=STREAMS[-1] / cpu if cpu else None,
        stream_tok_per_s=1 / PACE.gap_s,
    )


def request_errors(record: RequestRecord) -> tuple[float, float | None] | None:
    """(TTFT error, TPOT error) of one completed stream of the null server. Unit: seconds.

    Formula: TTFT: (first chunk − sent) − (first stamp − received stamp); TPOT: the difference of
    (last − first) / (tokens − 1) between arrivals and stamps.
    Undefined: None for a failed request; TPOT None below 2 tokens.
    """
    if not record.completed or record.sent_s is None or not record.chunk_s:
        return None
    truth = read_truth(record.text)
    ttft_s = record.chunk_s[0] - record.sent_s - (truth.sent_s[0] - truth.received_s)
    tokens = record.output_tokens or 0
    if tokens < 2:
        return ttft_s, None
    spread_s = (record.chunk_s[-1] - record.chunk_s[0]) - (truth.sent_s[-1] - truth.sent_s[0])
    return ttft_s, spread_s / (tokens - 1)


def output_tok_per_s(seen: BlockObservation) -> float | None:
    """Output tokens of completed requests / duration of the block. Undefined: nothing completed."""
    tokens = sum(record.output_tokens or 0 for record in seen.requests if record.completed)
    return tokens / seen.duration_s if tokens and seen.duration_s > 0 else None


def stream_errors(streams: int, seen: BlockObservation) -> StreamErrors:
    """The quantiles over a block's requests; errors by their size, whatever their sign."""
    pairs = [pair for pair in map(request_errors, seen.requests) if pair is not None]
    ttft = [abs(ttft_s) for ttft_s, _ in pairs]
    tpot = [abs(tpot_s) for _, tpot_s in pairs if tpot_s is not None]
    lags = [
        record.sent_s - record.offset_s
        for record in seen.requests
        if record.sent_s is not None and record.offset_s is not None
    ]
    return StreamErrors(
        streams=streams,
        requests=len(seen.requests),
        failed=sum(not record.completed for record in seen.requests),
        ttft_error_p50_s=upper_quantile(ttft, 0.5),
        ttft_error_p99_s=upper_quantile(ttft, 0.99),
        tpot_error_p50_s=upper_quantile(tpot, 0.5),
        tpot_error_p99_s=upper_quantile(tpot, 0.99),
        send_lag_p50_s=upper_quantile(lags, 0.5),
        send_lag_p99_s=upper_quantile(lags, 0.99),
        loop_lag_p99_s=seen.client.loop_lag_p99_s,
        cpu_fraction=seen.client.cpu_fraction,
    )


def render(calibration: Calibration) -> str:
    """The table `doctor --client` prints."""
    title = (
        f"Load generator on this machine ({calibration.cores} cores, Python "
        f"{calibration.python}), one process, against a server of known times"
    )
    head = (
        "streams",
        "requests",
        "failed",
        "TTFT error",
        "TPOT error",
        "send lag",
        "loop lag",
        "CPU",
    )
    under = ("", "", "", "p50 / p99 ms", "p50 / p99 ms", "p50 / p99 ms", "p99 ms", "of a core")
    rows = [
        (
            str(each.streams),
            str(each.requests),
            str(each.failed),
            f"{_ms(each.ttft_error_p50_s)} / {_ms(each.ttft_error_p99_s)}",
            f"{_ms(each.tpot_error_p50_s)} / {_ms(each.tpot_error_p99_s)}",
            f"{_ms(each.send_lag_p50_s)} / {_ms(each.send_lag_p99_s)}",
            _ms(each.loop_lag_p99_s),
            _percent(each.cpu_fraction),
        )
        for each in calibration.errors
    ]
    widths = [max(len(row[i]) for row in (head, under, *rows)) for i in range(len(head))]
    table = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (head, under, *rows)
    ]
    return "\n".join((title, "", *table, "", _capacity(calibration), _judgement(calibration)))


def _capacity(calibration: Calibration) -> str:
    if calibration.capacity_tok_per_s is None:
        return "capacity: not measured (no stream completed at full load)"
    text = (
        f"capacity: {calibration.capacity_tok_per_s:,.0f} tokens/s at full load, with "
        f"{_percent(calibration.full_load_cpu_fraction)} of a core"
    )
    cpu = calibration.full_load_cpu_fraction
    if cpu is not None and cpu < 0.9:
        text += " (a lower bound: the client was not the limit)"
    if calibration.capacity_streams is not None:
        text += (
            f"; about {calibration.capacity_streams:,.0f} streams of "
            f"{calibration.stream_tok_per_s:g} tokens/s would fill it"
        )
    return text


def _judgement(calibration: Calibration) -> str:
    late = [
        str(each.streams)
        for each in calibration.errors
        if each.ttft_error_p99_s is None
        or each.tpot_error_p99_s is None
        or max(each.ttft_error_p99_s, each.tpot_error_p99_s) > ERROR_LIMIT_S
    ]
    if not late:
        return f"errors: p99 within {ERROR_LIMIT_S * 1e3:g} ms at every step"
    return (
        f"errors: p99 over {ERROR_LIMIT_S * 1e3:g} ms at {', '.join(late)} streams; end other work "
        "on this machine and measure again, or run the client on a machine of its own"
    )


def _paced(
    client: HttpLoadClient, server: NullProcess, streams: int, step_s: float
) -> BlockObservation:
    """About `streams` at once: they start evenly, as many in a stream's life as there shall be."""
    life_s = PACE.due_s(PACED_TOKENS - 1)
    rate_rps = streams / life_s
    count = max(2, round(rate_rps * step_s))
    load = LoadPoint("open", rate_rps=rate_rps, arrivals="constant")
    return client.run_block(
        server.endpoint(PACE.write()), _block(count, load, PACED_TOKENS, rate_rps)
    )


def _full_load(client: HttpLoadClient, server: NullProcess, step_s: float) -> BlockObservation:
    # How many requests fill the time is found by a short try.
    load = LoadPoint("closed", concurrency=FULL_LOAD_STREAMS)
    where = server.endpoint(FULL_LOAD.write())
    tried = client.run_block(where, _block(FULL_LOAD_STREAMS, load, FULL_LOAD_TOKENS))
    rounds = max(1, round(step_s / max(tried.duration_s, 0.01)) - 1)
    return client.run_block(where, _block(FULL_LOAD_STREAMS * rounds, load, FULL_LOAD_TOKENS))


def _block(count: int, load: LoadPoint, tokens: int, rate_rps: float | None = None) -> BlockPlan:
    requests = tuple(
        PlannedRequest(f"r{i}", _PROMPT, i / rate_rps if rate_rps else None, tokens, seed=i)
        for i in range(count)
    )
    return BlockPlan(requests, load, Sampling(), "chat", True, "first_turn", Timeouts())


def _ms(seconds: float | None) -> str:
    return "n/a" if seconds is None else f"{seconds * 1e3:.2f}"


def _percent(fraction: float | None) -> str:
    return "n/a" if fraction is None else f"{fraction:.0%}"
