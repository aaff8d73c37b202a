"""What Ray Serve's proxy adds to an answer: the same paced app behind it, and on bare uvicorn.

    python benchmarks/gateway/bench_gateway.py [--repeats 5] [--write docs/gateway.md]

Both are asked by the product's own load generator, in turn (A B, B A, ...), with the same requests.
Both arms of every experiment stand behind the same proxy, so its cost is in both figures and not
in their ratio; it is printed so that absolute times can be read right.
"""

# ruff: noqa: E402  (the repository has to be on the path before its package is imported)
from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from paced_app import GAP_S, TTFT_S, make_app

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.local.host_facts import processor
from orchestrator.adapters.ray_local import ensure_ray, ensure_serve, free_port
from orchestrator.measure.latency import tpot_s, ttft_s
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt
from orchestrator.plan.trial import LoadPoint, Sampling
from orchestrator.ports import Endpoint
from orchestrator.records import RequestRecord

STREAMS = (1, 16, 64)
TOKENS = 64
ROUNDS = 4
"""Requests a stream, per block."""
BARE, SERVE = "bare uvicorn", "behind Ray Serve"


def block(streams: int) -> BlockPlan:
    prompt = Prompt("paced", "paced", ("Say a.",))
    return BlockPlan(
        requests=tuple(
            PlannedRequest(f"{n}", prompt, None, TOKENS, None) for n in range(streams * ROUNDS)
        ),
        load=LoadPoint("closed", concurrency=streams),
        sampling=Sampling(),
        endpoint="chat",
        fixed_length=True,
        history="first_turn",
    )


@contextmanager
def bare() -> Iterator[Endpoint]:
    port = free_port()
    options = ["--log-level", "warning", "--no-access-log", "--port", str(port)]
    uvicorn = [sys.executable, "-m", "uvicorn", "--factory", "paced_app:make_app", *options]
    with subprocess.Popen(uvicorn, cwd=HERE) as process:
        try:
            yield ready(Endpoint(BARE, f"http://127.0.0.1:{port}", "paced"))
        finally:
            process.terminate()


@contextmanager
def behind_serve() -> Iterator[Endpoint]:
    from ray import serve

    ray = ensure_ray()
    address = ensure_serve()
    import paced_app
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(paced_app)

    @serve.deployment(max_ongoing_requests=1024)
    @serve.ingress()
    class Paced:
        def __serve_build_asgi_app__(self) -> object:
            return make_app()

    try:
        serve.run(Paced.bind(), name="paced", route_prefix="/paced")
        yield ready(Endpoint(SERVE, f"{address.url}/paced", "paced"))
    finally:
        serve.shutdown()
        ray.close()


def ready(endpoint: Endpoint) -> Endpoint:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(f"{endpoint.base_url}/health", timeout=5):
            return endpoint
        time.sleep(0.1)
    sys.exit(f"{endpoint.base_url} did not answer within 60 s")


def measure(repeats: int) -> dict[tuple[int, str], list[RequestRecord]]:
    seen: dict[tuple[int, str], list[RequestRecord]] = defaultdict(list)
    with bare() as one, behind_serve() as two, HttpLoadClient(1) as client:
        for endpoint in (one, two):
            client.run_block(endpoint, block(max(STREAMS)))
        for turn in range(repeats):
            for streams in STREAMS:
                for endpoint in (one, two) if turn % 2 == 0 else (two, one):
                    answers = client.run_block(endpoint, block(streams)).requests
                    failed = [each for each in answers if not each.completed]
                    if failed:
                        sys.exit(f"{endpoint.name}: {failed[0].error}: {failed[0].error_text}")
                    seen[streams, endpoint.name] += answers
    return seen


def quantiles(values: Sequence[float], planned_s: float) -> tuple[float, float]:
    """(median, 99th percentile) of what was added to the plan, in ms."""
    late = sorted((value - planned_s) * 1e3 for value in values)
    return statistics.median(late), late[min(len(late) - 1, int(0.99 * len(late)))]


def page(seen: dict[tuple[int, str], list[RequestRecord]], repeats: int) -> str:
    lines = [
        "# What the gateway costs",
        "",
        "Made by `python benchmarks/gateway/bench_gateway.py`. The same app, which sends its "
        f"first token after {TTFT_S * 1e3:g} ms and one every {GAP_S * 1e3:g} ms, behind Ray "
        "Serve's proxy as every engine of a sweep, and on bare uvicorn. Figures: milliseconds "
        "later than planned, as the load generator saw them.",
        "",
        "| streams | | TTFT median | TTFT p99 | TPOT median | TPOT p99 |",
        "|---|---|---|---|---|---|",
    ]
    for streams in STREAMS:
        rows = {}
        for name in (BARE, SERVE):
            records = seen[streams, name]
            first = [value for each in records if (value := ttft_s(each)) is not None]
            gap = [value for each in records if (value := tpot_s(each)) is not None]
            rows[name] = (*quantiles(first, TTFT_S), *quantiles(gap, GAP_S))
        rows["the proxy adds"] = tuple(b - a for a, b in zip(rows[BARE], rows[SERVE], strict=True))
        for name, figures in rows.items():
            lines.append(
                f"| {streams} | {name} | " + " | ".join(f"{f:.2f}" for f in figures) + " |"
            )
    lines += [
        "",
        f"Conditions: {datetime.date.today()}, {processor()['model']}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}; {repeats} blocks a row, {ROUNDS} requests a stream "
        f"and block, {TOKENS} tokens a request, arms in turn; client, proxy and app share the "
        "cores. "
        "Both arms of an experiment stand behind the proxy: it is in both figures, so it pulls a "
        "speedup towards 1 by its share of them, and never to one side.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", type=Path, help="write the page here as well")
    arguments = parser.parse_args()
    text = page(measure(arguments.repeats), arguments.repeats)
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
