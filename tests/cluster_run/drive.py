"""A sweep on a Ray cluster with simulated engines behind Ray Serve.

python -m tests.cluster_run.drive ADDRESS|local EXPERIMENT.yaml RESULTS
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from orchestrator.cli.machine_room import join
from orchestrator.cli.preparation import prepare
from orchestrator.cli.running import ClusterEngines
from orchestrator.cli.sweep import manifest_of
from orchestrator.ports import Progress
from orchestrator.store import SweepFolder
from orchestrator.sweep import Sweep, run_sweep
from tests.cluster_run import simulated_app
from tests.sweep.world import RememberingTracker


def say(event: Progress) -> None:
    label = event.trial.label() if event.trial else ""
    print(event.kind, label, event.text, event.outcome or "", flush=True)


def main(address: str, file: str, results: str) -> None:
    joined = join(None if address == "local" else address)
    try:
        prepared = prepare(Path(file), offline=True, cluster=joined.facts)
        folder = SweepFolder(Path(results) / prepared.experiment.name)
        engines = ClusterEngines(prepared, folder, joined, build=simulated_app.build)
        try:
            run_sweep(
                Sweep(
                    jobs=prepared.jobs(),
                    further=prepared.further,
                    folder=folder,
                    manifest=manifest_of(prepared, folder),
                    executor=engines,
                    open_tracker=RememberingTracker,
                    on_progress=say,
                    device_use=engines.use,
                )
            )
            print("USE", json.dumps(asdict(engines.use())), flush=True)
        finally:
            engines.close()
    finally:
        joined.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
