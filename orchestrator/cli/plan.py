"""`plan`: what an experiment would run, and what cannot work. Starts nothing."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from orchestrator.cli.preparation import prepare
from orchestrator.errors import SpecError
from orchestrator.report.plan_text import plan_as_json, render_plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT.yaml")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument(
        "--offline", action="store_true", help="every model must be on this machine already"
    )


def run(args: argparse.Namespace) -> int:
    prepared = prepare(args.experiment, offline=args.offline)
    if args.json:
        shown = {**plan_as_json(prepared.plan), "missing_models": list(prepared.missing_models)}
        print(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        width = min(120, shutil.get_terminal_size((100, 24)).columns)
        print(render_plan(prepared.plan, width=width), end="")
        for missing in prepared.missing_models:
            print(f"Missing model: {missing}")
    if prepared.plan.errors or prepared.missing_models:
        print("It cannot run like this (see above).", file=sys.stderr)
        return SpecError.exit_status
    return 0
