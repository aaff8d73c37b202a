"""The client's processes: they end when they should, and their death is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import psutil
import pytest

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.simulated.null_process import NullProcess
from orchestrator.errors import ClientFailed
from tests.adapters.http.conftest import ROOT, block

WORKER = "orchestrator.adapters.http.worker"
DRIVER = """
import sys
from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.simulated.null_process import NullProcess
from tests.adapters.http.conftest import block
client = HttpLoadClient(2)
client.run_block(NullProcess(int(sys.argv[1]), 0).endpoint(), block(2))
print("ready", flush=True)
client.run_block(NullProcess(int(sys.argv[1]), 0).endpoint("fault=silence"), block(2))
"""


def workers_of(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children()
    return [child for child in children if WORKER in " ".join(child.cmdline())]


def wait_until(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def test_a_worker_stays_for_the_next_block_and_goes_with_close(null_server: NullProcess) -> None:
    client = HttpLoadClient(1)
    client.run_block(null_server.endpoint(), block(1))
    (first,) = workers_of(os.getpid())
    client.run_block(null_server.endpoint(), block(1))
    assert workers_of(os.getpid()) == [first]
    client.close()
    assert not first.is_running()


def test_a_worker_that_dies_in_mid_block_is_told_and_replaced(null_server: NullProcess) -> None:
    with HttpLoadClient(2) as client:
        client.run_block(null_server.endpoint(), block(2))
        victim = workers_of(os.getpid())[1]
        threading.Timer(0.1, victim.kill).start()
        with pytest.raises(ClientFailed, match=f"{victim.pid} ended by signal 9") as fault:
            client.run_block(null_server.endpoint("ttft=0.5"), block(2))
        assert fault.value.failure == "client_failed"
        assert workers_of(os.getpid()) == []
        seen = client.run_block(null_server.endpoint(), block(2))
        assert all(record.completed for record in seen.requests)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_its_parent(null_server: NullProcess, how: signal.Signals) -> None:
    """SIGKILL of the driver in mid-block; Ctrl-C, which the terminal sends to the whole group."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(null_server.port)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert driver.stdout is not None and driver.stdout.readline() == "ready\n"
    workers = workers_of(driver.pid)
    assert len(workers) == 2
    time.sleep(0.1)
    os.killpg(driver.pid, how)
    driver.wait(20)
    driver.stdout.close()
    assert wait_until(lambda: not any(worker.is_running() for worker in workers))


def test_a_worker_does_not_import_what_it_does_not_need() -> None:
    heavy = {"ray", "vllm", "mlflow", "pandas", "torch", "numpy", "pyarrow"}
    code = f"import sys, {WORKER}; print(*sorted(set(sys.modules) & {heavy}))"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == []
