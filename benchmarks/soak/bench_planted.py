"""What is planted in a soak, and how often the verdict finds it: the table in docs/soak.md.

    python -m benchmarks.soak.bench_planted --seeds 20

Prints Markdown. No engine is started: the windows are drawn, and judged as a suite's would be.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from benchmarks.soak.planted import PLANTED, planted_soak
from orchestrator.analyse.suites.soak import judge_soak
from orchestrator.run.suites.record import SuiteResult


def found_in(result: SuiteResult) -> tuple[str, frozenset[str]]:
    """The verdict without its hours, and the findings."""
    words = result.verdict.partition(" (")[0]
    verdict = "no finding" if result.ok is not False else words
    return verdict, frozenset(case.case for case in result.findings)


def rows(seeds: int) -> Iterator[tuple[str, str, int, int, str]]:
    """(planted, verdict it must have, seeds with it, seeds with exactly the findings, others)."""
    for name, (scenario, verdict, findings) in PLANTED.items():
        right, exact = 0, 0
        others: Counter[str] = Counter()
        for seed in range(seeds):
            said, found = found_in(judge_soak(planted_soak(scenario, seed)))
            right += said == verdict
            exact += found == frozenset(findings)
            others.update(found - frozenset(findings))
        shown = ", ".join(f"{case} {count}" for case, count in others.most_common(3)) or "none"
        yield name, verdict, right, exact, shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    print(f"| planted | must be | so called, of {seeds} | exactly its findings | others found |")
    print("|---|---|---|---|---|")
    for name, verdict, right, exact, others in rows(seeds):
        print(f"| {name} | {verdict} | {right} | {exact} | {others} |", flush=True)


if __name__ == "__main__":
    main()
