"""Options that several verbs share, and what they default to."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where records are kept (default: ./results)",
    )


def add_tracking(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument(
        "--tracking-uri",
        metavar="URI",
        help="MLflow store or server (default: MLFLOW_TRACKING_URI, else sqlite in the results)",
    )


def tracking_uri(args: argparse.Namespace, from_file: str | None = None) -> str:
    """The flag, else the experiment file's, else the environment's, else sqlite in the results."""
    results: Path = args.results
    return (
        args.tracking_uri
        or from_file
        or os.environ.get("MLFLOW_TRACKING_URI")
        or f"sqlite:///{results.resolve() / 'mlflow.db'}"
    )


def sweep_folder(args: argparse.Namespace, sweep: str) -> Path:
    """A sweep is given by its folder, or by its name within --results."""
    folder = Path(sweep)
    results: Path = args.results
    return folder if (folder / "sweep.json").exists() else results / sweep
