"""The null server as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orchestrator
from orchestrator.adapters.simulated.null_schedule import HEADER
from orchestrator.adapters.simulated.null_server import READY
from orchestrator.errors import DeploymentError
from orchestrator.ports import Endpoint
from orchestrator.records import FailureClass


@dataclass(frozen=True, slots=True)
class NullProcess:
    """Where a null server answers, and its process."""

    port: int
    pid: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def endpoint(self, schedule: str = "") -> Endpoint:
        """An endpoint that asks for a schedule of its own (`NullSchedule.write`)."""
        return Endpoint("null", self.base_url, "null", {HEADER: schedule}, simulated=True)


@contextmanager
def running_null_server(schedule: str = "", *, core: int | None = None) -> Iterator[NullProcess]:
    """A null server on a free port of the loopback, on one core if asked for.

    Raises: DeploymentError if it does not come up.
    """
    root = str(Path(orchestrator.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "orchestrator.adapters.simulated.null_server",
            "--schedule",
            schedule,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        told = process.stdout.readline()
        if not told.startswith(READY):
            log = process.stderr.read()
            cause = log.strip().rpartition("\n")[2] or "it wrote nothing"
            raise DeploymentError(FailureClass.START_FAILED, f"null server: {cause}", log)
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        yield NullProcess(int(told.rsplit(" ", 1)[1]), process.pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
