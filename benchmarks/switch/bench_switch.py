"""What the switch costs: the same paced app behind Ray Serve, without it and behind it.

    python benchmarks/switch/bench_switch.py [--repeats 5] [--write docs/switch-cost.md]

Both are asked by the product's own load generator, in turn (A B, B A, …), with the same requests.
Without the switch the app is a Serve application; with it the app listens on a socket of its own
and the switch, a Serve application with one replica and a keeper, passes its bytes on. Bounds: at
most 3 ms more TTFT at the 99th percentile, at most 5 % less throughput at 64 streams.
"""

# ruff: noqa: E402  (the repository has to be on the path before its package is imported)
from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "gateway")]

import numpy as np
from bench_gateway import ROUNDS, TOKENS, block, ready
from paced_app import GAP_S, TTFT_S, make_app

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.local.host_facts import processor
from orchestrator.adapters.ray_local import ensure_ray, ensure_serve, free_port
from orchestrator.measure.latency import tpot_s, ttft_s
from orchestrator.ports import BlockObservation, Endpoint
from orchestrator.serving.direct import DirectServer
from orchestrator.serving.switch.app import build

STREAMS = (1, 16, 64)
WITHOUT, WITH = "behind Ray Serve", "behind the switch"
TTFT_BOUND_S, THROUGHPUT_BOUND = 0.003, 0.05


@contextmanager
def both() -> Iterator[tuple[Endpoint, Endpoint]]:
    import paced_app
    from ray import cloudpickle, serve

    for module in (paced_app, sys.modules[__name__]):
        if module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)
    ray = ensure_ray()
    address = ensure_serve()

    @serve.deployment(max_ongoing_requests=1024, ray_actor_options={"num_cpus": 0})
    @serve.ingress()
    class Paced:
        async def __init__(self, path: str | None = None) -> None:  # type: ignore[misc]
            if path is not None:
                self._direct = DirectServer(make_app(), Path(path))
                await self._direct.open()

        def __serve_build_asgi_app__(self) -> object:
            return make_app()

    with tempfile.TemporaryDirectory(prefix="switch-") as state:
        config: dict[str, Any] = {
            "state": state,
            "policy": {"mode": "fixed", "share": 0.5},
            "admin": {"port": free_port()},
            "paths": ["/v1/chat/completions"],
            "health": {"period_s": 4.0},
            "guard": {},
        }
        try:
            serve.run(Paced.bind(), name="without", route_prefix="/without")
            for arm in ("baseline", "speculative"):
                serve.run(Paced.bind(f"{state}/{arm}.sock"), name=arm, route_prefix=None)
            serve.run(build(config), name="switch", route_prefix="/switch")
            yield (
                ready(Endpoint(WITHOUT, f"{address.url}/without", "paced")),
                ready(Endpoint(WITH, f"{address.url}/switch", "paced")),
            )
        finally:
            serve.shutdown()
            ray.close()


Seen = dict[tuple[int, str], list[BlockObservation]]


def measure(repeats: int) -> Seen:
    seen: Seen = defaultdict(list)
    with both() as (one, two), HttpLoadClient(1) as client:
        for endpoint in (one, two):
            client.run_block(endpoint, block(max(STREAMS)))
        for turn in range(repeats):
            for streams in STREAMS:
                for endpoint in (one, two) if turn % 2 == 0 else (two, one):
                    answers = client.run_block(endpoint, block(streams))
                    failed = [each for each in answers.requests if not each.completed]
                    if failed:
                        sys.exit(f"{endpoint.name}: {failed[0].error}: {failed[0].error_text}")
                    seen[streams, endpoint.name].append(answers)
    return seen


def figures(blocks: Sequence[BlockObservation]) -> dict[str, float]:
    """TTFT in s (median, p99), gap p99 in s, throughput in tokens/s (median over blocks)."""
    records = [record for one in blocks for record in one.requests]
    first = [value for each in records if (value := ttft_s(each)) is not None]
    gaps = [value for each in records if (value := tpot_s(each)) is not None]
    rates = []
    for one in blocks:
        begun = min(each.sent_s for each in one.requests if each.sent_s is not None)
        ended = max(each.end_s for each in one.requests if each.end_s is not None)
        rates.append(len(one.requests) * TOKENS / (ended - begun))
    return {
        "ttft_p50_s": float(np.quantile(first, 0.5)),
        "ttft_p99_s": float(np.quantile(first, 0.99)),
        "tpot_p99_s": float(np.quantile(gaps, 0.99)),
        "throughput": float(np.median(rates)),
    }


def page(seen: Seen, repeats: int) -> tuple[str, bool]:
    lines = [
        "# What the switch costs",
        "",
        "Made by `make bench-switch`. One app, which sends its first token after "
        f"{TTFT_S * 1e3:g} ms and one every {GAP_S * 1e3:g} ms, as a Serve application and behind "
        "the switch, half of the requests to each arm.",
        "",
        "| streams | | TTFT median | TTFT p99 | TPOT p99 | tokens/s |",
        "|---|---|---|---|---|---|",
    ]
    kept = True
    for streams in STREAMS:
        rows = {name: figures(seen[streams, name]) for name in (WITHOUT, WITH)}
        for name, row in rows.items():
            lines.append(
                f"| {streams} | {name} | {row['ttft_p50_s'] * 1e3:.2f} ms | "
                f"{row['ttft_p99_s'] * 1e3:.2f} ms | {row['tpot_p99_s'] * 1e3:.2f} ms | "
                f"{row['throughput']:.0f} |"
            )
        added = {name: rows[WITH][name] - rows[WITHOUT][name] for name in rows[WITH]}
        lost = 1 - rows[WITH]["throughput"] / rows[WITHOUT]["throughput"]
        kept &= added["ttft_p99_s"] <= TTFT_BOUND_S
        kept &= streams != max(STREAMS) or lost <= THROUGHPUT_BOUND
        lines.append(
            f"| {streams} | **the switch adds** | {added['ttft_p50_s'] * 1e3:+.2f} ms | "
            f"{added['ttft_p99_s'] * 1e3:+.2f} ms | {added['tpot_p99_s'] * 1e3:+.2f} ms | "
            f"{-lost:+.1%} |"
        )
    verdict = "kept" if kept else "NOT kept"
    lines += [
        "",
        f"Bounds (TTFT p99 at most +{TTFT_BOUND_S * 1e3:g} ms, throughput at most "
        f"−{THROUGHPUT_BOUND:.0%} at {max(STREAMS)} streams): **{verdict}**.",
        "",
        f"Conditions: {datetime.date.today()}, {processor()['model']}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}; {repeats} blocks a row, {ROUNDS} requests a stream "
        f"and block, {TOKENS} tokens a request, in turn; client, proxy, switch and app share the "
        "cores.",
        "",
    ]
    return "\n".join(lines), kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", type=Path, help="write the page here as well")
    arguments = parser.parse_args()
    text, kept = page(measure(arguments.repeats), arguments.repeats)
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(text, encoding="utf-8")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
