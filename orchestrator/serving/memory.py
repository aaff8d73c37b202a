"""What memory there was, for the record of an engine that ran out of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import psutil

_GIB = 1024**3
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_now(pids: Iterable[int] = ()) -> str:
    """The host's memory, a container's limit, and what these processes have resident."""
    host = psutil.virtual_memory()
    said = [f"host {_gib(host.available)} of {_gib(host.total)} GiB available"]
    limit = _container_limit()
    if limit is not None and limit < host.total:
        said.append(f"container limit {_gib(limit)} GiB")
    resident = sum(filter(None, (_resident(pid) for pid in pids)))
    if resident:
        said.append(f"engine {_gib(resident)} GiB resident")
    return "memory then: " + ", ".join(said)


def _gib(value: float) -> str:
    return f"{value / _GIB:.2f}"


def _resident(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def _container_limit() -> int | None:
    for path in _LIMITS:
        try:
            return int(Path(path).read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue
    return None
