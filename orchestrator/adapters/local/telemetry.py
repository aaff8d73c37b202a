"""How busy this host and the engine's processes are while a block runs.

| key | meaning | undefined (left out) when |
|---|---|---|
| `host_cpu_fraction` | busy time of all cores, 0..1 | - |
| `host_memory_used_bytes` | total − available | - |
| `host_load` | load average over one minute | the system has none |
| `process_rss_bytes` | resident memory of the engine's processes, summed | no pids |
| `process_count`, `process_threads`, `process_open_files` | summed over them | no pids |
| `process_open_files_limit` | the smallest soft limit of one of them | no pids, or no such limit |
| `host_memory_total_bytes` | what the host has | - |
| `process_cpu_fraction` | their CPU time, of all cores, 0..1 | no pids |
| `host_foreign_cpu_fraction` | cores kept busy by others than engine and client | no pids |

Foreign is what is left of the host's busy time after the engine's processes, this process, the
descendants of both and what runs alongside (a gateway): 1.0 is one whole core. A page that
processes share is resident in each.

Cost, measured with 107 processes on two busy cores: four readings and one look through the process
table a second take 0.01 of one core.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

from orchestrator.adapters.local.host_facts import load_average
from orchestrator.adapters.local.process_resources import resources_of
from orchestrator.adapters.local.process_tree import descendants, parents
from orchestrator.adapters.local.sampling import PERIOD_S, SamplingRun
from orchestrator.ports import Endpoint, TelemetryRun

TREE_EVERY_S = 1.0
"""Looking through the process table costs more than all the rest; engines fork seldom."""


@dataclass(frozen=True)
class HostTelemetry:
    """Implements ports.Telemetry for the host this process runs on."""

    period_s: float = PERIOD_S
    alongside: Callable[[], Iterable[int]] = tuple
    """Further processes that belong to the measurement (a gateway, a cluster's own): not foreign.
    They are counted themselves, what descends from them is not."""

    def start(self, endpoint: Endpoint) -> TelemetryRun:
        reader = HostReader(endpoint.pids, alongside=self.alongside())
        return SamplingRun(reader.read, self.period_s)


class HostReader:
    """Differences between one reading and the next; the first reading is the construction."""

    def __init__(
        self,
        pids: Iterable[int],
        clock: Callable[[], float] = time.monotonic,
        *,
        alongside: Iterable[int] = (),
    ) -> None:
        self._clock = clock
        self._alongside = frozenset(alongside)
        self._engine_roots = tuple(pids)
        self._own_root = os.getpid()
        self._engine: dict[int, psutil.Process] = {}
        self._client: dict[int, psutil.Process] = {}
        self._cpu_s: dict[tuple[int, float], float] = {}
        self._tree_at_s = -1e9
        self._resources: dict[str, float] = {}
        self._refresh_tree()
        self._at_s = clock()
        self._host_at = _host_times()
        self._used_s(self._engine)
        self._used_s(self._client)

    def read(self) -> dict[str, float]:
        """One sample's values."""
        if self._clock() - self._tree_at_s >= TREE_EVERY_S:
            self._refresh_tree()
        # Clock, host and processes one right after the other: they are divided by each other.
        now = self._clock()
        wall_s = now - self._at_s
        busy_s, total_s = _host_times()
        host_busy_s, host_total_s = busy_s - self._host_at[0], total_s - self._host_at[1]
        engine_s, client_s = self._used_s(self._engine), self._used_s(self._client)
        self._at_s, self._host_at = now, (busy_s, total_s)

        now_memory = psutil.virtual_memory()
        values = {
            "host_memory_used_bytes": float(now_memory.total - now_memory.available),
            "host_memory_total_bytes": float(now_memory.total),
        }
        load = load_average()
        if load is not None:
            values["host_load"] = load[0]
        if host_total_s > 0:
            values["host_cpu_fraction"] = _fraction(host_busy_s / host_total_s)
        if self._engine_roots and wall_s > 0:
            cores = psutil.cpu_count() or 1
            values["process_rss_bytes"] = self._rss_bytes()
            values |= self._resources
            values["process_cpu_fraction"] = _fraction(engine_s / wall_s / cores)
            if host_total_s > 0:
                foreign_s = host_busy_s - engine_s - client_s
                values["host_foreign_cpu_fraction"] = max(0.0, foreign_s / wall_s)
        return values

    def _refresh_tree(self) -> None:
        self._tree_at_s = self._clock()
        parent_of = parents()
        engine = descendants(self._engine_roots, parent_of)
        client = (descendants([self._own_root], parent_of) | self._alongside) - engine
        self._engine = _followed(self._engine, engine)
        self._client = _followed(self._client, client)
        self._resources = resources_of(self._engine.values())

    def _used_s(self, processes: dict[int, psutil.Process]) -> float:
        """CPU seconds since the last reading. A process that ended took its last bit with it."""
        used = 0.0
        for pid, process in list(processes.items()):
            try:
                times = process.cpu_times()
                key = (pid, process.create_time())
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                processes.pop(pid)
                continue
            spent = times.user + times.system
            # Of one seen for the first time it is not known when it spent what it has spent.
            used += spent - self._cpu_s.get(key, spent)
            self._cpu_s[key] = spent
        return used

    def _rss_bytes(self) -> float:
        total = 0
        for process in list(self._engine.values()):
            try:
                total += process.memory_info().rss
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return float(total)


def _followed(known: dict[int, psutil.Process], pids: set[int]) -> dict[int, psutil.Process]:
    """A handle for every pid; a known one is kept only while it is still the same process."""
    found = {}
    for pid in pids:
        try:
            kept = known.get(pid)
            found[pid] = kept if kept is not None and kept.is_running() else psutil.Process(pid)
        except psutil.NoSuchProcess:
            continue
    return found


def _host_times() -> tuple[float, float]:
    """Seconds busy and seconds in all, summed over cores; stolen time counts as not busy."""
    times = psutil.cpu_times()
    # The kernel counts guest time in user and nice already.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    idle = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
    return total - idle, total


def _fraction(value: float) -> float:
    """Into 0..1: the two clocks tick in hundredths and not together."""
    return min(1.0, max(0.0, value))
