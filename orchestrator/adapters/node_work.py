"""What has to be done on the node where an engine runs: its log, its processes, its address.

`NodeWork` does it in this process; `adapters.ray_cluster.agent` does the same on another node.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from orchestrator.adapters import processes, web
from orchestrator.adapters.device_memory import wait_device_memory_freed
from orchestrator.adapters.local.environment import environment_snapshot
from orchestrator.serving import app, template
from orchestrator.serving.engine_log import EngineState, log_tail, read_state, state_path
from orchestrator.serving.environment import allowed_cpus, compute_cpus, engine_environment

WORKER_PROXY_PORT = "RAY_SERVE_WORKER_PROXY_HTTP_PORT"
"""Ray Serve's own variable: the proxy of a node other than the head's listens there."""

TAIL_CHARACTERS = 8000


class NodeWork:
    """Of this node. Every method may raise DevicesLost where the node is another and gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._template: template.Template | None = None

    def proxy_port(self, port: int, *, is_head: bool) -> int:
        """Where this node's Serve proxy listens, given where the head's does."""
        own = os.environ.get(WORKER_PROXY_PORT)
        return port if is_head or not own else int(own)

    def fresh_log(self, folder: Path, name: str) -> Path:
        """A log of its own for every start: what an earlier one left is kept."""
        with self._lock:
            folder.mkdir(parents=True, exist_ok=True)
            number = 1
            while (path := folder / f"{name}-{number}.log").exists():
                number += 1
            path.touch(mode=0o600)
            state_path(path).unlink(missing_ok=True)
            return path

    def state(self, log: Path) -> EngineState | None:
        return read_state(log)

    def log_tail(self, log: Path, characters: int = TAIL_CHARACTERS) -> str:
        return log_tail(log, characters=characters)

    def alive(self, running: frozenset[processes.ProcessId]) -> list[int]:
        """The process numbers of those that still run."""
        return [one.pid for one in processes.alive(running)]

    def identify(self, pids: tuple[int, ...]) -> frozenset[processes.ProcessId]:
        return processes.identify(pids)

    def wait_gone(self, running: frozenset[processes.ProcessId], grace_s: float) -> None:
        """Returns when they and the device memory they held are gone; kills those that stay."""
        processes.wait_gone(running, grace_s=grace_s)
        wait_device_memory_freed({one.pid for one in running})

    def get_json(self, url: str, timeout_s: float = 30.0) -> dict[str, Any]:
        """Raises: OSError, ValueError"""
        return web.get_json(url, timeout_s=timeout_s)

    def post(self, url: str, timeout_s: float) -> None:
        """Raises: OSError"""
        web.post(url, timeout_s=timeout_s)

    def answers(self, url: str) -> bool:
        return web.answers(url)

    def has(self, path: Path) -> bool:
        return path.exists()

    def environment(self, folder: Path) -> dict[str, Any]:
        """What results from this node are comparable with; `folder` is where records go."""
        return environment_snapshot(folder)

    def template(self, logs: Path) -> str | None:
        """Address of the process that has imported vLLM, for all CPU engines of this node."""
        given = os.environ.get(template.VARIABLE)
        if not app.runs_on_cpu() or template.reachable(given):
            return given
        with self._lock:
            if self._template is None:
                cpus = compute_cpus(allowed_cpus())
                variables = engine_environment(accelerators=False, cpus=cpus, given={})
                log = logs / f"template-{os.getpid()}.log"
                self._template = template.start_template(cpus, {**os.environ, **variables}, log)
            return self._template.address

    def close(self) -> None:
        with self._lock:
            if self._template is not None:
                self._template.stop()
                self._template = None
