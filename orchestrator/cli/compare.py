"""`compare`: two sweeps, or a sweep against a stored decision, cell by cell.

Exit status: 0 no regression · 1 a regression beyond the margin · 5 nothing could be compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from orchestrator.cli.options import add_results, sweep_folder
from orchestrator.decide.compare import Comparison, compare
from orchestrator.decide.decision_document import read_decision
from orchestrator.decide.side import Side, side_of
from orchestrator.decide.sweep_result import whole_sweep
from orchestrator.errors import MeasurementInvalid
from orchestrator.report.comparison_html import comparison_html
from orchestrator.report.comparison_text import comparison_markdown, comparison_table
from orchestrator.store import SweepFolder
from orchestrator.store.atomic import write_atomically

REGRESSED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, text in (("before", "the earlier"), ("after", "the later")):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help=f"{text} one: a sweep's name or folder, or a decision.json",
        )
    add_results(parser)
    parser.add_argument(
        "--margin",
        type=_margin,
        help="of practical equality, as a fraction (default: the later sweep's)",
    )
    parser.add_argument("--all", action="store_true", help="show every figure")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write it as one HTML file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write it as Markdown")


def run(args: argparse.Namespace) -> int:
    found = compare(_side(args, args.before), _side(args, args.after), margin=args.margin)
    Console().print(comparison_table(found, all_figures=args.all))
    _write(args.html, comparison_html(found))
    _write(args.markdown, comparison_markdown(found))
    return status(found)


def status(found: Comparison) -> int:
    if found.regressions:
        return REGRESSED
    return 0 if found.compared else MeasurementInvalid.exit_status


def _side(args: argparse.Namespace, name: str) -> Side:
    if name.endswith(".json"):
        return read_decision(Path(name)).side
    return side_of(whole_sweep(SweepFolder(sweep_folder(args, name).resolve())))


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
        print(f"Written: {path}")


def _margin(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be a fraction between 0 and 1, but got {text!r}")
    return value
