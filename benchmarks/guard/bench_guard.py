"""How soon the guard finds planted breaches, and how often it is wrong: simulated traffic.

python benchmarks/guard/bench_guard.py            # the table of docs/guard.md: about 10 minutes
python benchmarks/guard/bench_guard.py --weeks 1 --repeats 5
"""

from __future__ import annotations

import argparse
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from orchestrator.adapters.simulated.guarded import guarded
from orchestrator.adapters.simulated.live_traffic import (
    DAY_S,
    FaultKind,
    LiveTraffic,
    PlantedFault,
    TrafficShape,
)
from orchestrator.switch.guard import GuardSettings, LiveGuard

LEARNING_S = 3_600.0
PATIENCE_S = 1_800.0
OUTAGES_PER_DAY = 0.33
"""Of both arms at once."""
SETTINGS = GuardSettings.model_validate(
    {
        "acceptance": {"floor": 0.35, "floors": {"fiction": 0.2}},
        "slo": {"ttft_p99_s": 0.75, "tpot_p95_s": 0.06},
    }
)
"""Every default, with a floor and objectives that the traffic keeps when nothing is planted."""


@dataclass(frozen=True)
class Case:
    """A fault of the speculative arm, by its words in the table."""

    label: str
    kind: FaultKind
    size: float
    category: str | None = None
    share: float = 0.5
    shadow_share: float = 0.05


CASES = (
    Case("acceptance halves, all traffic on the arm", "acceptance", 0.5, share=1.0),
    Case("acceptance halves, half of the traffic on the arm", "acceptance", 0.5),
    Case("acceptance halves in one category of a quarter", "acceptance", 0.5, "code"),
    Case("3 in 10 requests fail", "errors", 0.3),
    Case("1 in 10 requests fails", "errors", 0.1),
    Case("TTFT four times as long", "ttft", 4.0),
    Case("TPOT twice as long", "tpot", 2.0),
    Case("9 in 10 mirrored greedy answers differ, half mirrored", "mismatch", 0.9, None, 0.5, 0.5),
    Case("4 in 10 answers are repetitive", "repetition", 0.4),
)


def delay_s(case: Case, seed: int) -> float | None:
    """From the fault to the verdict that moves traffic; None: not found in PATIENCE_S."""
    random = np.random.default_rng([seed, 1])
    begins_s = LEARNING_S + float(random.uniform(0, 60))
    fault = PlantedFault(case.kind, begins_s, case.size, category=case.category)
    shape = TrafficShape(
        swing=0.0, share=case.share, shadow_share=case.shadow_share, faults=(fault,)
    )
    traffic = LiveTraffic(shape, random)
    guard = LiveGuard(SETTINGS, shows_figures=False)
    for at_s, view in guarded(guard, traffic, shape, 0.0, begins_s + PATIENCE_S):
        if view.reasons:
            return at_s - begins_s
    return None


def false_alarms(
    week: int, *, share: float, days: float = 7, outages_per_day: float = OUTAGES_PER_DAY
) -> list[str]:
    """Rules that moved traffic in a week without a fault of the speculative arm's own; a failed
    probe counts again."""
    shape = TrafficShape(share=share, outages_per_day=outages_per_day)
    traffic = LiveTraffic(shape, np.random.default_rng([week, 2]))
    guard = LiveGuard(SETTINGS, shows_figures=False)
    found: list[str] = []
    before: frozenset[tuple[float, str]] = frozenset()
    for _, view in guarded(guard, traffic, shape, 0.0, days * DAY_S):
        now = frozenset((breach.at_s, breach.rule) for breach in view.reasons)
        found += [rule for _, rule in now - before]
        before = now
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.processes) as pool:
        print(f"| planted at 2 requests/s | found | median s | 95 % s | longest s |\n{'|---' * 5}|")
        for case in CASES:
            found = list(pool.map(partial(delay_s, case), range(given.repeats)))
            delays = [one for one in found if one is not None]
            figures = (
                [f"{np.median(delays):.0f}", f"{np.quantile(delays, 0.95):.0f}",
                 f"{max(delays):.0f}"]
                if delays else ["-", "-", "-"]
            )  # fmt: skip
            row = [case.label, f"{len(delays)} of {len(found)}", *figures]
            print("| " + " | ".join(row) + " |", flush=True)
        head = "| share | outages of both a day | weeks without a fault | false fallbacks | by |"
        print(f"\n{head}\n{'|---' * 5}|")
        for share, outages in ((0.5, OUTAGES_PER_DAY), (1.0, 0.0), (1.0, OUTAGES_PER_DAY)):
            week = partial(false_alarms, share=share, outages_per_day=outages)
            wrong = list(pool.map(week, range(given.weeks)))
            rules = Counter(rule for week in wrong for rule in week)
            by = ", ".join(f"{rule} {times}" for rule, times in rules.items()) or "-"
            print(
                f"| {share:.0%} | {outages:g} | {given.weeks} | {rules.total()} | {by} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
