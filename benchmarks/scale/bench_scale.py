"""What the platform itself costs, on simulated engines: nothing else is left to measure then.

    python benchmarks/scale/bench_scale.py [--only sweep | plan | report]

Prints a table of figures and goals. Every part is a process of its own; run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grid import write_grid
from many_cells import write_cells

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENDED = (0, 4, 5)
PARTS = ("sweep", "plan", "report")


@dataclass(frozen=True)
class Row:
    what: str
    figure: str
    goal: str
    held: bool | None = None
    """None: a figure without a goal."""


def run(*command: str | Path) -> tuple[float, str]:
    """Wall seconds of a command of this Python, and what it printed."""
    began = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    took = time.perf_counter() - began
    if ended.returncode not in ENDED:
        sys.exit(f"{command} ended with {ended.returncode}")
    return took, ended.stdout


def sweep_rows(folder: Path, trials: int) -> list[Row]:
    file = write_grid(folder, "scale", trials)
    _, said = run(HERE / "one_sweep.py", file, folder / "r", "mlflow")
    seen: dict[str, Any] = json.loads(said.splitlines()[-1])
    count = seen["trials"]
    overhead_ms = (seen["trials_s"] - seen["measured_s"]) / count * 1e3
    early, late = (seen["rss_bytes"][int(count * share) - 1] / 2**20 for share in (0.1, 1.0))
    logging_ms = seen["logging_s"] / count * 1e3
    return [
        Row(
            f"{count:,} trials: wall time beyond what was measured, MLflow's writer beside them",
            f"{overhead_ms:.0f} ms a trial",
            "50 ms",
            overhead_ms <= 50,
        ),
        Row("of that, the driver's own CPU", f"{seen['cpu_s'] / count * 1e3:.0f} ms a trial", "–"),
        Row(
            "of that, the driver's waiting for the disk",
            f"{seen['flush_s'] / count * 1e3:.0f} ms a trial",
            "–",
        ),
        Row(
            "MLflow: one run written, in its own process beside the driver",
            f"{logging_ms:.0f} ms a trial",
            "less than a trial that measures",
            logging_ms < 1000,
        ),
        Row(
            "after the last trial: report, and what MLflow had still to write",
            f"{seen['end_s']:.0f} s",
            "–",
        ),
        Row(
            "driver's memory after a tenth of the trials, and after all",
            f"{early:.0f} → {late:.0f} MiB",
            "flat: + 10 %",
            late <= 1.1 * early,
        ),
        resume_row(folder, file, count),
    ]


def resume_row(folder: Path, file: Path, count: int) -> Row:
    took, _ = run("-m", "orchestrator", "sweep", file, "--results", folder / "r")
    return Row(f"resume of {count:,} finished trials", f"{took:.1f} s", "5 s", took < 5)


def plan_row(folder: Path, cells: int) -> Row:
    took, _ = run("-m", "orchestrator", "plan", write_grid(folder, "planned", cells))
    return Row(f"plan of {cells:,} cells", f"{took:.1f} s", "seconds", took < 10)


def report_rows(folder: Path, cells: int) -> list[Row]:
    run(HERE / "one_sweep.py", write_grid(folder, "origin", 80), folder / "r", "none")
    write_cells(write_grid(folder, "cells", cells), folder / "r" / "origin", folder / "r" / "cells")
    rows = []
    for state, goal in (("their numbers not kept yet", None), ("their numbers kept", 30.0)):
        took, _ = run("-m", "orchestrator", "report", folder / "r" / "cells")
        rows.append(
            Row(
                f"report over {cells:,} cells, {state}",
                f"{took:.1f} s",
                "–" if goal is None else f"{goal:g} s",
                None if goal is None else took < goal,
            )
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2_000)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--planned", type=int, default=100_000)
    parser.add_argument("--only", choices=PARTS, help="this part alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as name:
        folder = Path(name)
        rows: list[Row] = []
        if given.only in (None, "sweep"):
            rows += sweep_rows(folder, given.trials)
        if given.only in (None, "plan"):
            rows.append(plan_row(folder, given.planned))
        if given.only in (None, "report"):
            rows += report_rows(folder, given.cells)
    print("| | measured | goal | |\n|---|---|---|---|")
    for row in rows:
        said = {True: "held", False: "missed", None: ""}[row.held]
        print(f"| {row.what} | {row.figure} | {row.goal} | {said} |")
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[1]:.1f} (5 min), {time.strftime('%F')}")
    return 0 if all(row.held is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
