"""One log file per engine, and beside it a small state file that says how far the start has come.

The state file exists because a start that fails, hangs or is killed cannot be asked.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

Phase = Literal["starting", "importing", "loading", "ready", "failed", "stopped"]


@dataclass(frozen=True)
class EngineState:
    """What a replica last said of itself."""

    phase: Phase
    pids: tuple[int, ...] = ()
    host: str = ""
    failure: str | None = None
    cause: str | None = None

    def moved_to(self, phase: Phase, **changes: object) -> EngineState:
        return replace(self, phase=phase, **changes)  # type: ignore[arg-type]


def state_path(log_path: Path) -> Path:
    return log_path.with_suffix(".state.json")


def write_state(log_path: Path, state: EngineState) -> None:
    """Written to a temporary name and renamed: a reader never sees half of it."""
    path = state_path(log_path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(asdict(state)), encoding="utf-8")
    temporary.replace(path)


def read_state(log_path: Path) -> EngineState | None:
    """None when nothing was written yet, or not on this host."""
    try:
        fields = json.loads(state_path(log_path).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    fields["pids"] = tuple(fields["pids"])
    return EngineState(**fields)


def log_tail(log_path: Path, *, characters: int = 8000) -> str:
    """The end of a log; empty when there is none."""
    try:
        with log_path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - characters * 4))
            return log.read().decode("utf-8", errors="replace")[-characters:]
    except OSError:
        return ""


def redirect_output(log_path: Path) -> None:
    """Sends this process's stdout and stderr, and those of processes it starts, to the log."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    descriptor = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
    finally:
        os.close(descriptor)
