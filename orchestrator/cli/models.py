"""`models`: list and prepare local models and drafts."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from orchestrator.models.prepare import ModelRow, list_models, prepare, shipped_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="the catalogue, and what is prepared here (the default)")
    preparing = actions.add_parser("prepare", help="make a catalogue model ready to serve")
    preparing.add_argument("name")


def run(args: argparse.Namespace) -> int:
    if args.action == "prepare":
        for name in (args.name, *shipped_for(args.name)):
            path = prepare(name, lambda text: print(text, flush=True))
            print(f"{name} is ready in {path}")
        return 0
    rows = list_models()
    table = Table(box=None, pad_edge=False)
    for name in ("name", "kind", "size", "context", "state"):
        right = name in ("size", "context")
        table.add_column(name, no_wrap=True, justify="right" if right else "left")
    table.add_column("licence, source", overflow="fold")
    for row in rows:
        about = f"{row.licence}, {row.source}"
        table.add_row(row.name, row.kind, _size(row), str(row.context), row.state, about)
    Console().print(table)
    for row in rows:
        if row.path is not None:
            print(f"{row.name} is in {row.path}")
    return 0


def _size(row: ModelRow) -> str:
    """`135M`, `8.0B` parameters."""
    if row.parameters >= 1e9:
        return f"{row.parameters / 1e9:.1f}B"
    return f"{row.parameters / 1e6:.0f}M"
