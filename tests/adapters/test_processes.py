"""Processes of an engine: known for good, waited for, and killed when they stay."""

from __future__ import annotations

import subprocess
import sys

import psutil

from orchestrator.adapters import processes
from orchestrator.adapters.device_memory import wait_device_memory_freed

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
]


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


def test_identifies_a_process_with_what_it_started() -> None:
    code = f"import subprocess, sys; subprocess.run({SLEEPER!r})"
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        one = psutil.Process(parent.pid)
        while not one.children():
            parent.poll()

        found = {process.pid for process in processes.identify([parent.pid])}

        assert found == {parent.pid, one.children()[0].pid}
    finally:
        for child in psutil.Process(parent.pid).children(recursive=True):
            child.kill()
        parent.kill()
        parent.wait()


def test_a_number_that_was_used_again_is_not_the_same_process() -> None:
    child = subprocess.Popen(SLEEPER)
    try:
        (known,) = processes.identify([child.pid])
        other = processes.ProcessId(known.pid, known.started - 100)

        assert [one.pid for one in processes.alive([known])] == [child.pid]
        assert processes.alive([other]) == []
    finally:
        child.kill()
        child.wait()


def test_a_zombie_is_gone() -> None:
    child = subprocess.Popen(SLEEPER)
    known = processes.identify([child.pid])
    child.kill()
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
        pass

    assert processes.alive(known) == []
    child.wait()


def test_what_stays_is_killed() -> None:
    clock = Clock()
    child = subprocess.Popen(STUBBORN)
    known = processes.identify([child.pid])

    went_by_itself = processes.wait_gone(known, grace_s=20, now=clock.now, sleep=clock.sleep)

    assert not went_by_itself
    assert clock.at >= 20
    assert processes.alive(known) == []
    assert not psutil.pid_exists(child.pid)


def test_nothing_to_wait_for_is_gone_at_once() -> None:
    clock = Clock()

    assert processes.wait_gone(frozenset(), grace_s=20, now=clock.now, sleep=clock.sleep)
    assert clock.at == 0
    assert processes.identify([2**22 + 1]) == frozenset()


def test_a_process_that_is_gone_holds_no_device_memory() -> None:
    assert wait_device_memory_freed({2**22 + 1}, timeout_s=1)
