"""What processes hold besides memory: threads, open files, and how many they are."""

from __future__ import annotations

from collections.abc import Iterable

import psutil


def resources_of(processes: Iterable[psutil.Process]) -> dict[str, float]:
    """Summed over those that still run; what the system does not show of one is left out of all."""
    count, threads, files = 0, 0, 0
    limits: list[float] = []
    files_shown = True
    for process in processes:
        try:
            threads += process.num_threads()
            count += 1
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        try:
            files += process.num_fds()
            soft, _ = process.rlimit(psutil.RLIMIT_NOFILE)
            if soft != psutil.RLIM_INFINITY:
                limits.append(float(soft))
        except psutil.NoSuchProcess:
            continue
        except (psutil.AccessDenied, AttributeError):  # somebody else's; not Linux
            files_shown = False
    if not count:
        return {}
    found = {"process_count": float(count), "process_threads": float(threads)}
    if files_shown:
        found["process_open_files"] = float(files)
        if limits:
            found["process_open_files_limit"] = min(limits)
    return found
