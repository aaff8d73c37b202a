"""A process that has imported vLLM once and forks engine processes from itself.

Importing vLLM costs 15 s of CPU or more; an engine process that is forked from here has it already.
One template serves every CPU engine of a host. It ends when its owner ends, however that ends;
a forked engine ends when the replica that asked for it ends.

Engines on accelerators are started by vLLM's own means: their processes must not share a parent's
device state.
"""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import (
    connection,
    forkserver,
    parent_process,
    popen_forkserver,
    process,
    reduction,
    resource_tracker,
    spawn,
    util,
)
from multiprocessing import context as contexts
from pathlib import Path
from typing import Any

from orchestrator.serving.engine_log import redirect_output
from orchestrator.serving.environment import openmp_environment, preloads

VARIABLE = "ORCHESTRATOR_ENGINE_TEMPLATE"
"""Address of a template that replicas on this host may use."""

PID_FILE = "pid"
PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])

PRELOAD = ("orchestrator.serving.template_main",)


@dataclass(frozen=True)
class Template:
    """A running template, as its owner holds it."""

    address: str
    process: subprocess.Popen[bytes]
    alive: int
    """While this descriptor is open anywhere, the template stays."""
    folder: tempfile.TemporaryDirectory[str]

    def stop(self, *, timeout_s: float = 5.0) -> None:
        """Ends the template. Engines forked from it are not touched."""
        os.close(self.alive)
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def start_template(cpus: frozenset[int], environ: Mapping[str, str], log: Path) -> Template:
    """Starts a template and returns at once: whoever connects waits until the imports are done."""
    folder = tempfile.TemporaryDirectory(prefix="orchestrator-template-")
    address = str(Path(folder.name) / "socket")
    variables = {**environ, **openmp_environment(cpus), VARIABLE: ""}
    if preload := preloads():
        variables["LD_PRELOAD"] = preload
    variables["PYTHONPATH"] = os.pathsep.join(
        filter(None, [PACKAGE_ROOT, environ.get("PYTHONPATH", "")])
    )
    log.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener, log.open("ab") as output:
        listener.bind(address)
        Path(address).chmod(0o600)
        listener.listen()
        alive_r, alive_w = os.pipe()
        code = (
            "from multiprocessing.forkserver import main; "
            f"main({listener.fileno()}, {alive_r}, {list(PRELOAD)!r})"
        )
        try:
            child = subprocess.Popen(
                [sys.executable, "-c", code],
                env=variables,
                pass_fds=(listener.fileno(), alive_r),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        finally:
            os.close(alive_r)
    (Path(folder.name) / PID_FILE).write_text(str(child.pid), encoding="ascii")
    return Template(address, child, alive_w, folder)


def reachable(address: str | None) -> bool:
    """Whether a template is there. It is not connected to: it would take that as an order."""
    if not address:
        return False
    try:
        pid = int((Path(address).parent / PID_FILE).read_text(encoding="ascii"))
        os.kill(pid, 0)
    except (OSError, ValueError):
        return False
    return Path(address).is_socket()


class _Client:
    """Asks a template that another process owns for new processes."""

    def __init__(self, address: str) -> None:
        self.address = address
        # The protocol hands every child a descriptor that keeps the template alive. Engines must
        # not: a template is to end with its owner. So they get one end of a pipe of ours.
        self._not_alive, self._held = os.pipe()

    def new_process(self, descriptors: list[int]) -> tuple[int, int]:
        parent_r, child_w = os.pipe()
        child_r, parent_w = os.pipe()
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(self.address)
                tracker = resource_tracker.getfd()
                sent = [child_r, child_w, self._not_alive, *([] if tracker is None else [tracker])]
                reduction.sendfds(client, [*sent, *descriptors])
        except BaseException:
            os.close(parent_r)
            os.close(parent_w)
            raise
        finally:
            os.close(child_r)
            os.close(child_w)
        return parent_r, parent_w


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class _Popen(popen_forkserver.Popen):
    """`multiprocessing`'s own, with the template in place of a server of this process."""

    _fds: list[int]

    def _launch(self, process_obj: Any) -> None:
        preparation = spawn.get_preparation_data(process_obj._name)
        # The child has no use for the main module of a Ray worker.
        preparation.pop("init_main_from_path", None)
        preparation.pop("init_main_from_name", None)
        buffer = io.BytesIO()
        contexts.set_spawning_popen(self)
        try:
            reduction.dump(preparation, buffer)
            reduction.dump(process_obj, buffer)
        finally:
            contexts.set_spawning_popen(None)
        self.sentinel, write_end = process_obj.client.new_process(self._fds)
        held_while_we_live = os.dup(write_end)
        self.finalizer = util.Finalize(self, _close, (held_while_we_live, self.sentinel))
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(buffer.getbuffer())
        self.pid = forkserver.read_signed(self.sentinel)


class TemplateProcess(process.BaseProcess):
    """A process forked from a template, in the environment of the process that asked for it."""

    _start_method = "forkserver"
    client: _Client | None = None
    log_path: str | None = None
    cpus: frozenset[int] = frozenset()
    environ: dict[str, str]

    @staticmethod
    def _Popen(process_obj: Any) -> _Popen:
        process_obj.environ = dict(os.environ)
        return _Popen(process_obj)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "client"}

    def run(self) -> None:
        started_with = {
            name: os.environ[name]
            for name in ("LD_PRELOAD", *openmp_environment(frozenset()))
            if name in os.environ
        }
        if self.cpus and hasattr(os, "sched_setaffinity"):
            # OpenMP has bound the template's thread to one CPU, and a child starts out like it.
            os.sched_setaffinity(0, self.cpus)
        os.environ.clear()
        os.environ.update(self.environ | started_with)
        if self.log_path is not None:
            redirect_output(Path(self.log_path))
        end_with_parent()
        super().run()


class TemplateContext(contexts.ForkServerContext):
    """A `multiprocessing` context whose processes come from the template at `address`."""

    def __init__(self, address: str, log_path: Path | None, cpus: frozenset[int]) -> None:
        client = _Client(address)
        log = None if log_path is None else str(log_path)

        def make(*args: Any, **kwargs: Any) -> TemplateProcess:
            made = TemplateProcess(*args, **kwargs)
            made.client, made.log_path, made.cpus = client, log, cpus
            return made

        self.Process = make  # type: ignore[assignment,misc]


def end_with_parent() -> None:
    """Ends this process when the one that asked for it is gone, even by SIGKILL."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def suits(engine: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """Whether a template's settings are this engine's: one device, our own choice of threads."""
    one_device = all(
        int(engine.get(f"{kind}_parallel_size", 1)) == 1 for kind in ("tensor", "pipeline", "data")
    )
    own_threads = {"VLLM_CPU_OMP_THREADS_BIND", "LD_PRELOAD", "OMP_NUM_THREADS"} & set(environ)
    return (
        one_device
        and not own_threads
        and engine.get("distributed_executor_backend", "uni") == "uni"
    )
