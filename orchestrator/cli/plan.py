"""`plan`: what an experiment would run, and what cannot work. Starts nothing."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from orchestrator.cli.options import add_suites, suites_asked
from orchestrator.cli.preparation import prepare
from orchestrator.errors import SpecError
from orchestrator.report.plan_text import plan_as_json, render_plan
from orchestrator.report.suite_plan import suites_as_json, suites_text
from orchestrator.spec.search import PRESETS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "search presets (search: {preset: NAME}, docs/search.md):\n" + "\n".join(
        f"  {name:28}{question}" for name, (question, _) in PRESETS.items()
    )
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT.yaml")
    add_suites(parser)
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument(
        "--offline", action="store_true", help="every model must be on this machine already"
    )


def run(args: argparse.Namespace) -> int:
    prepared = prepare(args.experiment, offline=args.offline, suites=suites_asked(args))
    if args.json:
        shown = {
            **plan_as_json(prepared.plan),
            "suites": suites_as_json(prepared.plan, prepared.suite_jobs()),
            "missing_models": list(prepared.missing_models),
        }
        print(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        width = min(120, shutil.get_terminal_size((100, 24)).columns)
        print(render_plan(prepared.plan, width=width), end="")
        print(suites_text(prepared.plan, prepared.suite_jobs()), end="")
        if not prepared.measures:
            print("Only suites are asked for: no trial is run.")
        for missing in prepared.missing_models:
            print(f"Missing model: {missing}")
    if prepared.plan.errors or prepared.missing_models:
        print("It cannot run like this (see above).", file=sys.stderr)
        return SpecError.exit_status
    return 0
