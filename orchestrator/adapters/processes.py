"""Processes of an engine on this host: which they are, and that they are gone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class ProcessId:
    """A process for good: numbers are used again, so the start time belongs to it."""

    pid: int
    started: float


def identify(pids: Iterable[int]) -> frozenset[ProcessId]:
    """The given processes that are alive, with everything they have started."""
    found = set()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            for one in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    found.add(ProcessId(one.pid, one.create_time()))
    return frozenset(found)


def alive(processes: Iterable[ProcessId]) -> list[psutil.Process]:
    """Those that still run; a zombie does not."""
    running = []
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(one.pid)
            same = process.create_time() == one.started
            if same and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    return running


def wait_gone(
    processes: frozenset[ProcessId],
    *,
    grace_s: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Waits until all are gone; kills those that stay. True if none had to be killed."""
    until = now() + grace_s
    while now() < until:
        if not alive(processes):
            return True
        sleep(0.05)
    stayed = alive(processes)
    for process in stayed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stayed, timeout=5)
    return not stayed
