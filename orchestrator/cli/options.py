"""Options that several verbs share, and what they default to."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pydantic_core import PydanticCustomError

from orchestrator.errors import Fault, SpecError
from orchestrator.spec.search import SUITE_NAMES


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where records are kept (default: ./results)",
    )


def add_suites(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--suites",
        metavar="NAME,NAME",
        help="run these instead of the file's (without performance: no trials): "
        + ", ".join(SUITE_NAMES.available),
    )


def suites_asked(args: argparse.Namespace) -> tuple[str, ...] | None:
    """The flag's suites, or None where it is not given. Raises: SpecError."""
    if args.suites is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for name in args.suites.split(",") if name.strip()))
    if not names:
        raise SpecError([Fault("--suites", None, "", "must name a suite", repr(args.suites))])
    faults = []
    for name in names:
        try:
            SUITE_NAMES.checked(name)
        except PydanticCustomError as error:
            told = error.context or {}
            faults.append(
                Fault("--suites", None, "", str(told["rule"]), f"'{name}'", told.get("hint"))
            )
    if faults:
        raise SpecError(faults)
    return names


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
