"""Runs Python that nobody has read, in a process that can do little.

Always: a process group of its own that is killed at the timeout, a fresh working folder, no
environment, `python -I`, limits on CPU time, memory, file size, open files and processes.
Where the kernel lets us (as root, or with user namespaces): no network, every file system read-only
but the working folder, and no privileges of root. `SandboxResult.isolation` says which were in
force. It keeps accidents in; it is not built to keep a determined attacker in: files that the user
may read can be read, and other processes of the same user be signalled.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

_LAUNCHER = Path(__file__).with_name("sandbox_launcher.py")
_KEPT_CHARACTERS = 20_000


class Ending(StrEnum):
    """How a sandboxed program ended."""

    EXITED_0 = "exited with 0"
    FAILED = "raised or exited with another status"
    TIMED_OUT = "ran past its time"
    KILLED = "killed by a limit"
    NOT_STARTED = "the sandbox did not start"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use."""

    wall_s: float = 30.0
    """Generous: a busy machine must not turn a right answer into a wrong one; CPU time is the
    limit that endless loops meet."""
    cpu_s: int = 5
    memory_bytes: int = 512 * 2**20
    file_bytes: int = 2**20
    """Per file, output included."""
    open_files: int = 32


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What a program did."""

    ending: Ending
    exit_status: int | None
    """Negative: the signal that ended it. None: killed at the timeout."""
    stdout: str
    stderr: str
    isolation: frozenset[str]
    """Of "network" (none), "filesystem" (read-only), "user" (not root), "limits": in force."""


def run_python(source: str, limits: Limits | None = None) -> SandboxResult:
    """Runs a Python program and waits for its end. Never raises for what the program does."""
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(
        prefix="orchestrator-sandbox-", ignore_cleanup_errors=True
    ) as folder:
        home = Path(folder)
        work = home / "work"
        work.mkdir()
        home.chmod(0o755)
        work.chmod(0o777)
        program, report = home / "program.py", home / "isolation"
        program.write_text(source, encoding="utf-8", errors="surrogatepass")
        program.chmod(0o644)
        with (home / "stdout").open("wb") as out, (home / "stderr").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-I", str(_LAUNCHER), str(program), str(work), str(report)]
                + [f"{name}={int(value)}" for name, value in asdict(limits).items()],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=work,
                env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                start_new_session=True,
            )
            status = _wait(process, limits.wall_s)
        isolation = report.read_text().split() if report.exists() else []
        return SandboxResult(
            ending=_ending(status, started="limits" in isolation),
            exit_status=status,
            stdout=_tail(home / "stdout"),
            stderr=_tail(home / "stderr"),
            isolation=frozenset(isolation),
        )


def _wait(process: subprocess.Popen[bytes], wall_s: float) -> int | None:
    try:
        return process.wait(timeout=wall_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Whatever the program left running in its group goes with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ending(status: int | None, *, started: bool) -> Ending:
    if status is None:
        return Ending.TIMED_OUT
    if not started:
        return Ending.NOT_STARTED
    if status == 0:
        return Ending.EXITED_0
    if status in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGXFSZ):
        return Ending.TIMED_OUT if status == -signal.SIGXCPU else Ending.KILLED
    return Ending.FAILED


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _KEPT_CHARACTERS))
        return file.read().decode("utf-8", "replace")
