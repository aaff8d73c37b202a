"""`ui`: MLflow's UI on the tracking store."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

from orchestrator.cli.options import add_tracking, tracking_uri
from orchestrator.errors import Fault, SpecError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_tracking(parser)
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine only")
    parser.add_argument("--port", type=int, default=5000)


def run(args: argparse.Namespace) -> int:
    uri = tracking_uri(args)
    if uri.startswith(("http://", "https://")):
        print(f"The tracking server has its own UI: {uri}")
        return 0
    database = Path(uri.removeprefix("sqlite:///"))
    if uri.startswith("sqlite:///") and not database.exists():
        raise SpecError(
            [
                Fault(
                    str(database),
                    None,
                    "",
                    "no tracking store yet",
                    hint="run a sweep first, or give its folder with --results or its address "
                    "with --tracking-uri",
                )
            ]
        )
    _refuse_taken_port(args.host, args.port)
    print(f"MLflow on http://{args.host}:{args.port}  (Ctrl-C ends it)", flush=True)
    command = [
        sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri,
        "--default-artifact-root", str(database.parent / "mlartifacts"),
        "--host", args.host, "--port", str(args.port), "--workers", "1",
    ]  # fmt: skip
    # The job runners of `mlflow server` take 2 GB and are for features that are not used here.
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    process = subprocess.Popen(command, env=environment)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait(timeout=10)
        return 0


def _refuse_taken_port(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SpecError(
                [
                    Fault(
                        "command line",
                        None,
                        "--port",
                        f"cannot be listened on at {host} ({error.strerror})",
                        str(port),
                        "give a free one",
                    )
                ]
            ) from error
