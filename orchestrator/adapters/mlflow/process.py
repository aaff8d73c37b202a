"""MLflow in a process of its own: ports.Tracker for sweeps.

The library costs seconds to import, hundreds of MiB, and tens of milliseconds of CPU a run: none of
that should be the driver's, beside which engines are measured. The process is nice, leaves Ctrl-C
to its parent, and ends when the pipe to it closes, so that it cannot outlive whoever started it.

    python -m orchestrator.adapters.mlflow.process      (commands on standard input)
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from orchestrator.adapters.messages import read_message, write_message
from orchestrator.errors import TrackingUnavailable
from orchestrator.ports import TrackedRun, TrackedSweep

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])
_NICENESS = 5


class MlflowProcess:
    """See ports.Tracker. The process starts with the first call and ends with `close`."""

    def __init__(self, uri: str, *, experiment: str, results: Path) -> None:
        self._uri = uri
        self._options = {"experiment": experiment, "results": results.resolve()}
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def open_sweep(self, sweep: TrackedSweep) -> None:
        self._ask("open_sweep", sweep)

    def log_run(self, run: TrackedRun) -> None:
        self._ask("log_run", run)

    def close_sweep(
        self,
        *,
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
        artifacts: Mapping[str, Path],
        status: Literal["FINISHED", "FAILED", "KILLED"],
    ) -> None:
        self._ask(
            "close_sweep",
            metrics=dict(metrics),
            tags=dict(tags),
            artifacts=dict(artifacts),
            status=status,
        )

    def location(self) -> str:
        return self._uri

    def close(self) -> None:
        """Ends the process, in the middle of a write if need be; may be called from any thread."""
        self._closed = True
        process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            # Something may be unsent, or another thread just reading.
            with contextlib.suppress(OSError, ValueError):
                cast(BinaryIO, pipe).close()

    def _ask(self, method: str, *arguments: Any, **options: Any) -> None:
        try:
            process = self._running()
            write_message(cast(BinaryIO, process.stdin), (method, arguments, options))
            kind, text = read_message(cast(BinaryIO, process.stdout))
        except (EOFError, OSError, ValueError) as error:
            raise TrackingUnavailable(
                f"the process that writes to MLflow at {self._uri} ended; the records are safe, "
                "and `python -m orchestrator track SWEEP` logs them"
            ) from error
        if kind == "unavailable":
            raise TrackingUnavailable(text)
        if kind == "failed":
            raise RuntimeError(f"the process that writes to MLflow failed; its trace:\n{text}")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            if self._closed:
                raise EOFError("closed")
            path = os.pathsep.join(filter(None, (_PACKAGE_ROOT, os.environ.get("PYTHONPATH"))))
            self._process = subprocess.Popen(
                [sys.executable, "-m", "orchestrator.adapters.mlflow.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                # Ctrl-C in the terminal reaches the foreground group: the parent decides.
                start_new_session=True,
            )
            write_message(cast(BinaryIO, self._process.stdin), (self._uri, self._options))
        return self._process


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    commands = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the replies
    with contextlib.suppress(EOFError):
        _serve(commands, replies)


def _serve(commands: BinaryIO, replies: BinaryIO) -> None:
    import traceback

    uri, options = read_message(commands)
    tracker: Any = None
    while True:
        method, arguments, named = read_message(commands)
        try:
            if tracker is None:
                from orchestrator.adapters.mlflow.tracker import MlflowTracker

                tracker = MlflowTracker(uri, **options)
            getattr(tracker, method)(*arguments, **named)
        except TrackingUnavailable as error:
            write_message(replies, ("unavailable", str(error)))
        except Exception:  # noqa: BLE001  (handed to the parent, which raises it)
            write_message(replies, ("failed", traceback.format_exc()))
        else:
            write_message(replies, ("done", ""))


if __name__ == "__main__":
    main()
