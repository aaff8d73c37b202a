"""Processes and what descends from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

_PROC = Path("/proc")


def with_descendants(pids: Iterable[int]) -> set[int]:
    """The pids that still run, and every process below them; one look at the process table."""
    return descendants(pids, parents())


def descendants(pids: Iterable[int], parent_of: Mapping[int, int]) -> set[int]:
    """The same in a table that was looked at before."""
    found = {pid for pid in pids if pid in parent_of}
    children: dict[int, list[int]] = {}
    for pid, parent in parent_of.items():
        children.setdefault(parent, []).append(pid)
    open_ends = list(found)
    while open_ends:
        for child in children.get(open_ends.pop(), ()):
            if child not in found:
                found.add(child)
                open_ends.append(child)
    return found


def parents() -> dict[int, int]:
    """The parent of every process there is.

    Read straight from /proc where there is one: a tenth of what psutil needs for its objects.
    """
    if not (_PROC / "self/stat").exists():
        return {process.pid: process.info["ppid"] for process in psutil.process_iter(["ppid"])}
    found = {}
    for name in os.listdir(_PROC):  # noqa: PTH208 - names are all that is needed, every second
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                    # The command's name stands in brackets and may hold anything, brackets too.
                    found[int(name)] = int(file.read().rpartition(b")")[2].split(None, 2)[1])
            except (OSError, IndexError):  # it ended while we looked
                continue
    return found
