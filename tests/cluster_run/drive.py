"""The command line on engines that are no vLLM: everything else is the product's own.

python -m tests.cluster_run.drive sweep EXPERIMENT.yaml --results RESULTS --address ADDRESS
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from orchestrator.adapters.serve_application import Build

ROOT = Path(__file__).resolve().parents[2]


def command_line(build: Build, *, tracked: bool) -> int:
    """`orchestrator` with the arguments of this process. Without `tracked` nothing is tracked:
    MLflow costs seconds of a small machine."""
    from orchestrator.cli import main, running, sweep
    from tests.sweep.world import RememberingTracker

    running.ENGINE_APP = build
    if not tracked:
        sweep._tracker = lambda *_: RememberingTracker()  # type: ignore[assignment]
    return main()


def begin(module: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """A module of this kind in a process, and a group of processes, of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


if __name__ == "__main__":
    from tests.cluster_run import simulated_app

    sys.exit(command_line(simulated_app.build, tracked=False))
