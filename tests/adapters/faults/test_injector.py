"""Real signals, real processes, a disk that is really full; and what is not allowed is said."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.adapters.faults import HostFaults
from orchestrator.adapters.faults.injector import BALLAST_MOST
from orchestrator.ports import Endpoint, FaultUnavailable
from orchestrator.spec.soak import SoakFault


def fault(kind: str, **given: Any) -> dict[str, Any]:
    plain = {"kind": kind, "at": 0, "lasts": 60} | given
    return SoakFault.model_validate(plain).model_dump(mode="json")


def within(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[HostFaults]:
    made = HostFaults(tmp_path)
    yield made
    made.close()


@pytest.fixture
def engine() -> Iterator[psutil.Process]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield psutil.Process(process.pid)
    process.kill()
    process.wait()


def endpoint(process: psutil.Process) -> Endpoint:
    return Endpoint("engine", "http://127.0.0.1:1", "tiny", pids=(process.pid,))


def test_a_stopped_engine_goes_on_by_itself_when_its_time_is_over(
    faults: HostFaults, engine: psutil.Process
) -> None:
    faults.inject(fault("worker_stopped", lasts=2), {"baseline": endpoint(engine)})
    assert within(lambda: engine.status() == psutil.STATUS_STOPPED)
    assert within(lambda: engine.status() != psutil.STATUS_STOPPED), "nobody undid it"


def test_closing_undoes_what_still_holds(faults: HostFaults, engine: psutil.Process) -> None:
    faults.inject(fault("worker_stopped"), {"baseline": endpoint(engine)})
    assert within(lambda: engine.status() == psutil.STATUS_STOPPED)
    faults.close()
    assert within(lambda: engine.status() != psutil.STATUS_STOPPED)


def test_a_killed_engine_is_gone(faults: HostFaults, engine: psutil.Process) -> None:
    faults.inject(fault("engine_killed"), {"baseline": endpoint(engine)})
    assert engine.wait(10) == -signal.SIGKILL


def test_engines_elsewhere_cannot_be_stopped(faults: HostFaults) -> None:
    far = Endpoint("engine", "http://10.0.0.1:1", "tiny")
    with pytest.raises(FaultUnavailable, match="not on this host"):
        faults.inject(fault("worker_stopped"), {"baseline": far})


def test_a_hog_runs_until_it_is_undone(faults: HostFaults) -> None:
    before = set(psutil.Process().children())
    held = faults.inject(fault("cpu_hog", share=0.01), {})
    (hog,) = set(psutil.Process().children()) - before
    assert within(lambda: hog.cpu_times().user > 0.1)
    held.undo()
    assert not hog.is_running()


def test_memory_is_really_taken_and_given_back(faults: HostFaults) -> None:
    share = 64 * 2**20 / psutil.virtual_memory().available
    before = set(psutil.Process().children())
    held = faults.inject(fault("memory_pressure", share=share), {})
    (taker,) = set(psutil.Process().children()) - before
    assert within(lambda: taker.memory_info().rss > 55 * 2**20)
    held.undo()
    assert not taker.is_running()


def test_a_busy_disk_leaves_nothing_behind(faults: HostFaults, tmp_path: Path) -> None:
    held = faults.inject(fault("disk_slow"), {})
    assert within(lambda: any(path.stat().st_size > 0 for path in tmp_path.iterdir()))
    held.undo()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_not_made_for_it_is_not_filled(
    faults: HostFaults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=BALLAST_MOST + 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(FaultUnavailable, match="no file system is filled"):
        faults.inject(fault("disk_full", path=str(tmp_path)), {})


def test_a_small_disk_is_filled_to_the_last_byte_and_freed(
    faults: HostFaults, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"NOT TESTED: a full disk; mounting a file system needs root ({error})")
    try:
        held = faults.inject(fault("disk_full", path=str(disk)), {})
        with pytest.raises(OSError, match="No space left"):
            (disk / "one-more").write_bytes(bytes(4096))
        held.undo()
        (disk / "one-more").write_bytes(bytes(4096))
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_clock_that_jumps_is_set_right_by_the_monotonic_one(tmp_path: Path) -> None:
    told: list[float] = []
    faults = HostFaults(tmp_path, set_clock=told.append)
    began = time.time()
    faults.inject(fault("clock_jump", jump_s=3600.0), {}).undo()
    there, back = told
    assert there - began == pytest.approx(3600, abs=5)
    assert back - began == pytest.approx(0, abs=5)


def test_a_clock_that_may_not_be_set_is_said(tmp_path: Path) -> None:
    def refuse(unix_s: float) -> None:
        raise PermissionError

    with pytest.raises(FaultUnavailable, match="CAP_SYS_TIME"):
        HostFaults(tmp_path, set_clock=refuse).inject(fault("clock_jump"), {})
