"""`doctor`: what this machine can run, what is missing, and the command that mends it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orchestrator.adapters.local.doctor import Check, examine
from orchestrator.models.cache import cache_folder

_MARK = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "missing": "[red]missing[/]"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument(
        "--client", action="store_true", help="measure the load generator's own error instead"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="with --client: how long")


def run(args: argparse.Namespace) -> int:
    if args.client:
        return _client(args.seconds, as_json=args.json)
    checks = examine(results=args.results, cache=cache_folder())
    if args.json:
        print(json.dumps([asdict(check) for check in checks], indent=1))
    else:
        Console().print(_table(checks))
        _conclude(checks)
    return 6 if any(check.state == "missing" for check in checks) else 0


def _table(checks: list[Check]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for check in checks:
        cells = (escape(text) for text in (check.subject, check.found, check.mend or ""))
        table.add_row(_MARK[check.state], *cells)
    return table


def _conclude(checks: list[Check]) -> None:
    missing = [check.subject for check in checks if check.state == "missing"]
    if missing:
        print(f"\nA real sweep cannot run yet: {', '.join(missing)}.")
    else:
        print("\nReady. Next: python -m orchestrator sweep experiments/quickstart.yaml")


def _client(seconds: float, *, as_json: bool) -> int:
    from orchestrator.adapters.http.calibration import calibrate, render

    calibration = calibrate(seconds, lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps(asdict(calibration), indent=1) if as_json else render(calibration))
    return 0
