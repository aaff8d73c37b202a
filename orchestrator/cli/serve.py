"""`serve`: deployments side by side, in the foreground, until Ctrl-C."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", type=Path, metavar="CONFIG.yaml", help="a Ray Serve config file")
    parser.add_argument("--port", type=int, help="on loopback (default: the file's, else 8000)")
    parser.add_argument("--address", help="join this Ray cluster (default: one on this machine)")
    parser.add_argument(
        "--offline", action="store_true", help="never download: every model must be here already"
    )


def run(args: argparse.Namespace) -> int:
    from orchestrator.adapters.serve_foreground import serve_foreground

    return serve_foreground(
        args.config,
        port=args.port,
        address=args.address,
        offline=args.offline,
        on_message=lambda text: print(text, flush=True),
    )
