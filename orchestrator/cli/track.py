"""`track`: rebuild a sweep's MLflow runs from its stored records."""

from __future__ import annotations

import argparse

from orchestrator.cli.options import add_tracking, sweep_folder, tracking_uri
from orchestrator.report.plots import write_plots
from orchestrator.store import SweepFolder
from orchestrator.sweep import track_again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", metavar="SWEEP", help="a sweep's name, or its folder")
    add_tracking(parser)


def run(args: argparse.Namespace) -> int:
    from orchestrator.adapters.mlflow import MlflowTracker

    folder = SweepFolder(sweep_folder(args, args.sweep).resolve())
    manifest = folder.manifest()
    tracking = manifest["experiment"].get("tracking") or {}
    tracker = MlflowTracker(
        tracking_uri(args, tracking.get("uri")),
        experiment=tracking.get("experiment") or manifest["name"],
        results=args.results,
    )
    result = track_again(folder, tracker, write_plots)
    print(f"{len(result.every)} trials of {result.name} are in {tracker.location()}")
    return 0
