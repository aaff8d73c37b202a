"""`report`: the report of a sweep, from its stored records alone."""

from __future__ import annotations

import argparse

from rich.console import Console

from orchestrator.cli.options import add_results, sweep_folder
from orchestrator.decide.sweep_result import whole_sweep
from orchestrator.report.language import LANGUAGES, Words
from orchestrator.report.terminal import result_table
from orchestrator.report.written import write_report
from orchestrator.store import SweepFolder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", metavar="SWEEP", help="a sweep's name, or its folder")
    parser.add_argument(
        "--lang", choices=LANGUAGES, default="en", help="language of the report (default: en)"
    )
    add_results(parser)


def run(args: argparse.Namespace) -> int:
    folder = SweepFolder(sweep_folder(args, args.sweep).resolve())
    result = whole_sweep(folder)
    written = write_report(result, folder.path, Words(args.lang))
    Console().print(result_table(result))
    print(f"\nReport: {written.page}\n        {written.markdown}")
    return 0
