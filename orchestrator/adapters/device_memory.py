"""Waiting until an accelerator has let go of the memory of processes that are gone."""

from __future__ import annotations

import time
from collections.abc import Set

WAIT_S = 30.0


def wait_device_memory_freed(pids: Set[int], *, timeout_s: float = WAIT_S) -> bool:
    """True once no accelerator lists any of `pids`; at once where there is no accelerator.

    A driver takes a moment to free what a killed process held, and the next engine, which measures
    what is free, would be given less.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return True
    try:
        until = time.monotonic() + timeout_s
        while held := _listed() & pids:
            if time.monotonic() >= until:
                return not held
            time.sleep(0.2)
        return True
    finally:
        pynvml.nvmlShutdown()


def _listed() -> frozenset[int]:
    import pynvml

    found = set()
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        try:
            found |= {one.pid for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}
        except pynvml.NVMLError:
            continue
    return frozenset(found)
