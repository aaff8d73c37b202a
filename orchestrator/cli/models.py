"""`models`: list and prepare local models and drafts."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from orchestrator.models.prepare import list_models, prepare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="the catalogue, and what is prepared here (the default)")
    preparing = actions.add_parser("prepare", help="make a catalogue model ready to serve")
    preparing.add_argument("name")


def run(args: argparse.Namespace) -> int:
    if args.action == "prepare":
        path = prepare(args.name, lambda text: print(text, flush=True))
        print(f"{args.name} is ready in {path}")
        return 0
    table = Table(box=None, pad_edge=False)
    rows = list_models()
    names = list(vars(rows[0])) if rows else []
    for name in names:
        table.add_column(name.replace("_", " "), overflow="fold")
    for row in rows:
        values = (getattr(row, name) for name in names)
        table.add_row(*("–" if value is None else str(value) for value in values))
    Console().print(table)
    return 0
