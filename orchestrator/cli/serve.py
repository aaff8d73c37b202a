"""`serve`: deployments side by side, in the foreground, until Ctrl-C."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.errors import Fault, SpecError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config", type=Path, nargs="?", metavar="CONFIG.yaml", help="a Ray Serve config file"
    )
    parser.add_argument(
        "--from",
        dest="decision",
        type=Path,
        metavar="DECISION.json",
        help="the pair a sweep recommends, behind the switch, with the decision's limits",
    )
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="of the switch, with --from (default: ~/.local/state/orchestrator/SWEEP)",
    )
    parser.add_argument("--port", type=int, help="on loopback (default: the file's, else 8000)")
    parser.add_argument("--address", help="join this Ray cluster (default: one on this machine)")
    parser.add_argument(
        "--offline", action="store_true", help="never download: every model must be here already"
    )


def run(args: argparse.Namespace) -> int:
    if (args.config is None) == (args.decision is None):
        raise SpecError(
            [Fault("serve", None, "", "needs one of CONFIG.yaml and --from DECISION.json")]
        )
    from orchestrator.adapters.serve_foreground import serve_file_foreground
    from orchestrator.serving.canary import canary_from
    from orchestrator.serving.serve_file import read_serve_file

    if args.decision is None:
        file = read_serve_file(args.config)
    else:
        file, notes = canary_from(args.decision, state=args.state)
        print("\n".join(notes), flush=True)
    return serve_file_foreground(
        file,
        port=args.port,
        address=args.address,
        offline=args.offline,
        on_message=lambda text: print(text, flush=True),
    )
