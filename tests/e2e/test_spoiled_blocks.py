"""Blocks spoiled on purpose, as a user's machine would: none of them may count, each says why."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.test_attach import ROOT, SPECULATING, command, experiment, outcomes, simulated

pytestmark = pytest.mark.slow
INVALID_EXIT_STATUS = 5


@contextmanager
def running(file: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command(file), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as sweep:
        try:
            yield sweep
        finally:
            if sweep.poll() is None:
                sweep.kill()


def finished(sweep: subprocess.Popen[str], *, meanwhile: Callable[[], None] | None = None) -> str:
    """What the sweep printed; `meanwhile` is called over and over until it has ended."""
    said: list[str] = []
    assert sweep.stdout is not None
    reader = threading.Thread(target=lambda: said.append(sweep.stdout.read()))  # type: ignore[union-attr]
    reader.start()
    while sweep.poll() is None:
        if meanwhile is not None:
            meanwhile()
        time.sleep(0.01)
    reader.join()
    return said[0]


LONG_ANSWERS = [{"name": "chat", "prompts": "bundled:chat", "output_tokens": 400}]
"""Blocks of about half a second: what happens to the machine meanwhile can be seen."""


def report_of(file: Path) -> str:
    return (file.parent / "results" / "attached" / "report.md").read_text()


def test_other_work_on_the_machine_spoils_every_block(tmp_path: Path) -> None:
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        with simulated() as (baseline, _), simulated(**SPECULATING) as (speculative, _):
            file = experiment(tmp_path, baseline, speculative, workloads=LONG_ANSWERS)
            with running(file) as sweep:
                said = finished(sweep)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert sweep.returncode == INVALID_EXIT_STATUS, said
    for outcome in outcomes(file):
        assert (outcome["pairs_measured"], outcome["pairs_valid"]) == (3, 0)
        assert outcome["failure"] == "no_valid_pairs"
    assert "host_busy: other processes kept" in report_of(file)


def test_a_client_that_is_held_up_spoils_its_blocks(tmp_path: Path) -> None:
    with simulated() as (baseline, _), simulated(**SPECULATING) as (speculative, _):
        file = experiment(tmp_path, baseline, speculative, workloads=LONG_ANSWERS)
        with running(file) as sweep:
            said = finished(sweep, meanwhile=lambda: hold_up(sweep.pid))
    assert sweep.returncode == INVALID_EXIT_STATUS, said
    assert all(outcome["pairs_valid"] == 0 for outcome in outcomes(file))
    assert "client_loop_lag: the client's event loop woke up to" in report_of(file)


def hold_up(sweep_pid: int) -> None:
    """The load generator's processes stand still for 60 ms."""
    with suppress(psutil.Error):
        clients = [
            child
            for child in psutil.Process(sweep_pid).children(recursive=True)
            if "orchestrator.adapters.http.worker" in child.cmdline()
        ]
        for client in clients:
            client.send_signal(signal.SIGSTOP)
        time.sleep(0.06)
        for client in clients:
            client.send_signal(signal.SIGCONT)


def test_an_engine_replaced_in_mid_block_spoils_that_block(tmp_path: Path) -> None:
    """As behind a supervisor or a balancer: the process is killed, another answers in its place."""
    with (
        simulated() as (baseline, _),
        simulated(**SPECULATING) as (first, first_process),
        simulated(**SPECULATING) as (second, _),
        Front(first, second, replace_at_request=8, kill=first_process) as front,
    ):
        file = experiment(
            tmp_path,
            baseline,
            front.url,
            workloads=LONG_ANSWERS,
            measure={"pairs": {"min": 2, "max": 3}, "requests_per_block": 6},
        )
        with running(file) as sweep:
            said = finished(sweep)
        assert front.replaced, said
    report = report_of(file)
    assert "engine_restarted: engine processes were" in report, report + said
    _, comparison, *_ = outcomes(file)
    # Others may be spoiled too, by whatever else this machine does.
    assert comparison["pairs_valid"] < comparison["pairs_measured"]


class Front:
    """One address for two servers: the first, until it is killed in mid-stream, then the second."""

    def __init__(
        self, first: str, second: str, *, replace_at_request: int, kill: psutil.Process
    ) -> None:
        self._ports = [int(url.rpartition(":")[2]) for url in (first, second)]
        self._at, self._kill = replace_at_request, kill
        self._posts = 0
        self.replaced = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()

    def __enter__(self) -> Front:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            port = self._ports[self.replaced]
            try:
                server = socket.create_connection(("127.0.0.1", port))
            except OSError:
                caller.close()
                continue
            threading.Thread(target=self._pipe, args=(caller, server, True), daemon=True).start()
            threading.Thread(target=self._pipe, args=(server, caller, False), daemon=True).start()

    def _pipe(self, source: socket.socket, sink: socket.socket, requests: bool) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
                if requests and b"POST " in piece:
                    self._count()
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _count(self) -> None:
        with self._lock:
            self._posts += 1
            if self._posts == self._at:
                time.sleep(0.05)
                self._kill.kill()
                self.replaced = True
