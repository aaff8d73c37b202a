"""`ports.LoadClient` over HTTP, in processes of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

import orchestrator
from orchestrator.adapters.http.pool import Tls
from orchestrator.adapters.http.request import UsageWanted
from orchestrator.adapters.http.session import ClientOptions, LoopRunner, Session
from orchestrator.adapters.http.split import join_observations, split_block
from orchestrator.adapters.messages import read_message, write_message
from orchestrator.errors import ClientFailed
from orchestrator.plan.block import BlockPlan
from orchestrator.ports import BlockObservation, Endpoint

_LEAD_S = 0.02
"""Between the last worker's being ready and the common start: enough for the order to reach all."""
_STOP_S = 2.0


class HttpLoadClient:
    """Sends blocks to OpenAI-compatible servers.

    `workers` processes share a block; 0 runs it in the calling process, for tests. `usage` is how
    much the server is asked to count: "continuous" (tokens of every chunk; vLLM), "final" (only
    the sum; any OpenAI-compatible server) or "none" (for servers that reject `stream_options`).
    The processes are started with the first block and stay until `close`; they run on `cpus` only,
    where given.
    """

    def __init__(
        self,
        workers: int = 1,
        *,
        usage: UsageWanted = "continuous",
        tls_ca_file: str | None = None,
        tls_verify: bool = True,
        cpus: Collection[int] | None = None,
    ) -> None:
        if workers < 0:
            raise ValueError(f"workers >= 0 must hold, got {workers}")
        self._options = ClientOptions(usage, Tls(tls_ca_file, tls_verify))
        self._wanted, self._cpus = workers, cpus
        self._workers: list[Worker] = []
        self._here: tuple[LoopRunner, Session] | None = None

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        """Sends `block` and returns when its last request has ended, one way or another.

        Raises: ClientFailed if a client process died; ValueError if the block cannot be sent at
        all (an open loop without offsets, a reference history that is not there, a bad URL).
        """
        if self._wanted == 0:
            return self._run_here(endpoint, block)
        parts = split_block(block, self._wanted)
        try:
            while len(self._workers) < len(parts):
                self._workers.append(Worker(self._options, self._cpus))
            used = self._workers[: len(parts)]
            plain = picklable(endpoint)
            for worker, part in zip(used, parts, strict=True):
                worker.send("prepare", plain, part)
            replies_of(used, Worker.receive)
            start_s = time.monotonic() + _LEAD_S
            for worker in used:
                worker.send("go", start_s)
            observations = cast(list[BlockObservation], replies_of(used, Worker.receive))
        except ValueError:
            raise
        except BaseException:
            # A dead worker, or Ctrl-C in mid-block: the others are in an unknown state.
            self.close()
            raise
        return join_observations(block, observations)

    def close(self) -> None:
        """Ends every process this client started. It can be used again afterwards."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.stop()
        if self._here is not None:
            runner, session = self._here
            self._here = None
            session.close()
            runner.close()

    def __enter__(self) -> HttpLoadClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run_here(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        if self._here is None:
            self._here = (LoopRunner(), Session(self._options))
        runner, session = self._here
        runner.run(session.prepare(endpoint, block))
        return runner.run(session.go(time.monotonic()))


def picklable(endpoint: Endpoint) -> Endpoint:
    return Endpoint(endpoint.name, endpoint.base_url, endpoint.model, dict(endpoint.headers))


def replies_of(workers: list[Worker], ask: Callable[[Worker], Any]) -> list[Any]:
    """Every worker's reply; a refused plan is raised only after all have answered."""
    replies: list[Any] = []
    refused: ValueError | None = None
    for worker in workers:
        try:
            replies.append(ask(worker))
        except ValueError as fault:
            refused = fault
    if refused is not None:
        raise refused
    return replies


class Worker:
    """A process of the load generator; it ends with the pipe to it."""

    def __init__(self, options: ClientOptions, cpus: Collection[int] | None) -> None:
        root = str(Path(orchestrator.__file__).parent.parent)
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        with tempfile.NamedTemporaryFile(prefix="orchestrator-client-", delete=False) as log:
            self._log = Path(log.name)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "orchestrator.adapters.http.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                # Ctrl-C in the terminal reaches the foreground group: the parent decides.
                start_new_session=True,
            )
        if cpus and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self._process.pid, cpus)
        self._write(options)

    def send(self, *command: Any) -> None:
        self._write(command)

    def receive(self) -> Any:
        try:
            kind, *reply = read_message(cast(BinaryIO, self._process.stdout))
        except EOFError:
            raise self._death() from None
        if kind == "done":
            return reply[0]
        name, trace = reply
        if name == "ValueError":
            raise ValueError(trace.strip().rpartition("ValueError: ")[2])
        raise ClientFailed(f"the load generator failed with {name}; its trace:\n{trace}")

    def stop(self) -> None:
        if self._process.stdin is not None:
            # Broken: it is gone already, with something still unsent.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.unlink(missing_ok=True)

    def _write(self, message: Any) -> None:
        try:
            write_message(cast(BinaryIO, self._process.stdin), message)
        except BrokenPipeError:
            raise self._death() from None

    def _death(self) -> ClientFailed:
        status = self._process.wait()
        tail = self._log.read_text(errors="replace")[-2000:].strip()
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        told = f"; it wrote:\n{tail}" if tail else "; it wrote nothing"
        return ClientFailed(f"the load generator's process {self._process.pid} ended {how}{told}")
