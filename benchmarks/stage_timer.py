"""What timing the stages of an engine step costs, per step, without an engine.

    python benchmarks/stage_timer.py

A decode step is begun, four of its stages are entered and left, as the model runner does; the
difference to the same calls with contexts that do nothing is the timer's own cost.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from orchestrator.serving.stage_timer import HostClock, StageTimer, step_of

STEPS, ROUNDS, REQUESTS = 20_000, 7, 8
STAGES = ("verify", "verify", "sample", "draft")


def scheduled() -> Any:
    ids = [f"request-{n}" for n in range(REQUESTS)]
    return SimpleNamespace(
        num_scheduled_tokens=dict.fromkeys(ids, 5),
        scheduled_spec_decode_tokens={name: [1, 2, 3, 4] for name in ids},
        scheduled_new_reqs=[],
        scheduled_cached_reqs=SimpleNamespace(num_computed_tokens=[100] * REQUESTS),
    )


def timed(step: Any) -> float:
    timer = StageTimer(HostClock())
    begun = time.perf_counter()
    for _ in range(STEPS):
        timer.begin(*step_of(step))
        for name in STAGES:
            with timer.stage(name):
                pass
    return (time.perf_counter() - begun) / STEPS


def untimed() -> float:
    begun = time.perf_counter()
    for _ in range(STEPS):
        for _ in STAGES:
            with contextlib.nullcontext():
                pass
    return (time.perf_counter() - begun) / STEPS


def main() -> None:
    step = scheduled()
    costs = [timed(step) - untimed() for _ in range(ROUNDS)]
    print(f"{statistics.median(costs) * 1e6:.1f} µs a step of {REQUESTS} requests", end="")
    print(f" (least {min(costs) * 1e6:.1f}, most {max(costs) * 1e6:.1f}; {ROUNDS} rounds)")
    for step_s in (0.005, 0.030):
        share = statistics.median(costs) / step_s
        print(f"{share:.3%} of a step of {step_s * 1e3:g} ms")


if __name__ == "__main__":
    main()
