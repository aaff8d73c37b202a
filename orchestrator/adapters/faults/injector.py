"""`ports.FaultInjector` for engines whose processes run on this host, or servers behind a proxy."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from orchestrator.adapters.faults.proxy import Proxy
from orchestrator.adapters.local.process_tree import with_descendants
from orchestrator.ports import Endpoint, FaultUnavailable, Injection
from orchestrator.records import Arm

NETWORK = ("network_slow", "network_cut")
MEMORY_LEFT = 1.5 * 2**30
"""Memory pressure never takes the last: the host must outlive it."""
BALLAST_MOST = 8 * 2**30
"""A file system with more room than this is not filled: it is surely not one made for it."""
PIECE = 4 * 2**20


class HostFaults:
    """`folder` is where results are written: the disk that `disk_slow` keeps busy."""

    def __init__(self, folder: Path, set_clock: Callable[[float], None] | None = None) -> None:
        self._folder = folder
        self._set_clock = set_clock or _set_clock
        self._proxies: dict[Arm, tuple[str, Proxy]] = {}
        self._holding: list[Undo] = []

    def way_to(self, arm: Arm, endpoint: Endpoint, kinds: Sequence[str]) -> Endpoint:
        """Through a proxy where the network is to fail; TLS is left alone."""
        if not any(kind in NETWORK for kind in kinds) or endpoint.base_url.startswith("https:"):
            return endpoint
        known = self._proxies.get(arm)
        if known is None or known[0] != endpoint.base_url:
            if known is not None:
                known[1].close()
            known = self._proxies[arm] = (endpoint.base_url, Proxy(endpoint.base_url))
        return replace(endpoint, base_url=known[1].base_url)

    def inject(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Injection:
        """Raises: FaultUnavailable."""
        made = _INJECT[fault["kind"]](self, fault, endpoints)
        made.after(fault["lasts"])
        self._holding.append(made)
        return made

    def close(self) -> None:
        while self._holding:
            self._holding.pop().undo()
        for _, proxy in self._proxies.values():
            proxy.close()
        self._proxies.clear()

    def worker_stopped(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Undo:
        stopped = _signalled(endpoints, signal.SIGSTOP)
        return Undo(lambda: _each(stopped, lambda process: process.send_signal(signal.SIGCONT)))

    def engine_killed(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Undo:
        _signalled(endpoints, signal.SIGKILL)
        return Undo(lambda: None)

    def network(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Undo:
        proxies = [self._proxies[arm][1] for arm in endpoints if arm in self._proxies]
        if len(proxies) < len(endpoints):
            raise FaultUnavailable("the way to a server with TLS has no proxy in it")
        for proxy in proxies:
            if fault["kind"] == "network_cut":
                proxy.cut()
            else:
                proxy.slow(fault["delay_s"])

        def heal() -> None:
            for proxy in proxies:
                proxy.heal()

        return Undo(heal)

    def cpu_hog(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Undo:
        hogs = max(1, round(fault["share"] * (psutil.cpu_count() or 1)))
        return _processes(["while True: pass"] * hogs)

    def memory_pressure(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Undo:
        available = psutil.virtual_memory().available
        size = int(min(fault["share"] * available, available - MEMORY_LEFT))
        if size <= 0:
            raise FaultUnavailable(f"only {available / 2**30:.2g} GiB of memory are available")
        # Every page is touched, or nothing would be taken.
        return _processes(
            [
                f"import mmap, time\nheld = mmap.mmap(-1, {size})\n"
                f"for at in range(0, {size}, 4096): held[at] = 1\ntime.sleep(1e6)"
            ]
        )

    def disk_slow(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Undo:
        """A writer that flushes every piece to the disk, over and over in one file."""
        folder = Path(fault["path"]) if fault["path"] else self._folder
        file = folder / f".soak-writer-{os.getpid()}"
        room = shutil.disk_usage(folder).free
        if room < 64 * PIECE:
            raise FaultUnavailable(f"{folder} has only {room / 2**20:.0f} MiB left to write in")
        writer = _processes(
            [
                f"import os\nfile = os.open({str(file)!r}, os.O_CREAT | os.O_WRONLY)\n"
                f"piece = os.urandom({PIECE})\n"
                "while True:\n"
                "    os.lseek(file, 0, 0)\n"
                "    for _ in range(16): os.write(file, piece); os.fsync(file)"
            ]
        )

        def end() -> None:
            writer.undo()
            file.unlink(missing_ok=True)

        return Undo(end)

    def disk_full(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Undo:
        folder = Path(fault["path"])
        if not folder.is_dir():
            raise FaultUnavailable(f"{folder} is no folder")
        free = shutil.disk_usage(folder).free
        if free > BALLAST_MOST:
            raise FaultUnavailable(
                f"{folder} has {free / 2**30:.3g} GiB free, and above "
                f"{BALLAST_MOST / 2**30:g} GiB no file system is filled"
            )
        file = folder / f".soak-ballast-{os.getpid()}"
        _fill(file)
        return Undo(lambda: file.unlink(missing_ok=True))

    def clock_jump(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Undo:
        """The host's wall clock goes wrong; the monotonic one does not."""
        began_wall, began = time.time(), time.monotonic()
        try:
            self._set_clock(began_wall + fault["jump_s"])
        except PermissionError as error:
            raise FaultUnavailable(
                "the clock may not be set here: it takes root and CAP_SYS_TIME"
            ) from error
        return Undo(lambda: self._set_clock(began_wall + time.monotonic() - began))


class Undo:
    """Implements ports.Injection: what is to be done at a fault's end, once."""

    def __init__(self, undo: Callable[[], object]) -> None:
        self._undo: Callable[[], object] | None = undo
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def after(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self.undo)
        self._timer.daemon = True
        self._timer.start()

    def undo(self) -> None:
        with self._lock:
            undo, self._undo = self._undo, None
            if undo is not None:
                undo()
        if self._timer is not None:
            self._timer.cancel()


_INJECT: Mapping[str, Callable[[HostFaults, Mapping[str, Any], Mapping[Arm, Endpoint]], Undo]] = {
    "worker_stopped": HostFaults.worker_stopped,
    "engine_killed": HostFaults.engine_killed,
    "network_slow": HostFaults.network,
    "network_cut": HostFaults.network,
    "cpu_hog": HostFaults.cpu_hog,
    "memory_pressure": HostFaults.memory_pressure,
    "disk_slow": HostFaults.disk_slow,
    "disk_full": HostFaults.disk_full,
    "clock_jump": HostFaults.clock_jump,
}


def _signalled(endpoints: Mapping[Arm, Endpoint], number: int) -> list[psutil.Process]:
    """Every process of these engines, signalled. Raises: FaultUnavailable."""
    found: list[psutil.Process] = []
    for arm, endpoint in endpoints.items():
        pids = with_descendants(endpoint.pids)
        if not pids or endpoint.node is not None:
            raise FaultUnavailable(f"the {arm} engine's processes are not on this host")
        found += _alive(pids)
    _each(found, lambda process: process.send_signal(number))
    return found


def _alive(pids: set[int]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        try:
            found.append(psutil.Process(pid))
        except psutil.NoSuchProcess:
            continue
    return found


def _each(processes: Sequence[psutil.Process], do: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        try:
            do(process)
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied as error:
            raise FaultUnavailable(
                f"process {error.pid} belongs to somebody else; run as its owner, or as root"
            ) from error


def _processes(programs: Sequence[str]) -> Undo:
    """Python programs of ours that run until they are killed, or until this process has ended."""
    watch = (
        "import os, threading, time\n"
        f"def watch():\n    while os.getppid() == {os.getpid()}: time.sleep(0.5)\n    os._exit(0)\n"
        "threading.Thread(target=watch, daemon=True).start()\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", watch + program]) for program in programs]

    def end() -> None:
        for process in started:
            process.kill()
        for process in started:
            process.wait()

    return Undo(end)


def _fill(file: Path) -> None:
    """To the last byte."""
    piece = bytes(PIECE)
    with file.open("wb", buffering=0) as ballast:
        while piece:
            try:
                ballast.write(piece)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                piece = piece[: len(piece) // 2]


def _set_clock(unix_s: float) -> None:
    time.clock_settime(time.CLOCK_REALTIME, unix_s)
