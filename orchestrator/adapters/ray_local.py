"""Starting Ray and Serve on this machine, quietly and on loopback only."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psutil
import ray
from ray import serve
from ray._private import ray_constants

OBJECT_STORE_BYTES = 128 * 1024**2
"""Nothing large passes through Ray here: requests go over HTTP, records through files."""

LOOPBACK = "127.0.0.1"
START_ATTEMPTS = 3

LOCAL_VARIABLES: Mapping[str, str] = {
    # Workers run at niceness 15 otherwise, and any other process starves an engine on CPU.
    "RAY_worker_niceness": "0",
    # `uv run` would upload the working folder to every worker.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper": "true",
    # Idle workers started ahead cost seconds of CPU each while engines start.
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@dataclass(frozen=True)
class RayConnection:
    """Whether this process is the one that must end Ray."""

    started_here: bool
    connected_here: bool

    def close(self) -> None:
        if self.connected_here and ray.is_initialized():
            ray.shutdown()


def ensure_ray(address: str | None = None) -> RayConnection:
    """Connects to Ray: the connection there is, the cluster at `address`, or a new local one."""
    if ray.is_initialized():
        return RayConnection(started_here=False, connected_here=False)
    for name, value in LOCAL_VARIABLES.items():
        os.environ.setdefault(name, value)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address is not None:
        with _own_sigterm():
            ray.init(address=address, namespace="orchestrator", **quiet)
        return RayConnection(started_here=False, connected_here=True)
    _keep_to_loopback()
    for attempt in range(START_ATTEMPTS):
        try:
            with _own_sigterm():
                ray.init(
                    address="local",
                    namespace="orchestrator",
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE_BYTES,
                    **quiet,
                )
            break
        except Exception as error:
            # Ray gives its node 30 s to come up, which a busy machine can pass; it raises bare
            # Exception for it, and has ended what it started by then.
            if "timed out during startup" not in str(error) or attempt + 1 == START_ATTEMPTS:
                raise
    return RayConnection(started_here=True, connected_here=True)


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM by one that aborts: what a person had set comes back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _keep_to_loopback() -> None:
    """Makes a local Ray listen on 127.0.0.1 only.

    `_node_ip_address="127.0.0.1"` does not: Ray replaces it by the outer address. The switch that
    does is named after the platforms where it is the default.
    """
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # for processes that Ray starts
    ray_constants.ENABLE_RAY_CLUSTER = False


@dataclass(frozen=True)
class ServeAddress:
    host: str
    port: int
    started_here: bool

    every_node: bool = False
    """Each node has a proxy; otherwise only the head has."""

    @property
    def url(self) -> str:
        """Of the head's proxy, from the head."""
        return self.at(self.port)

    def at(self, port: int) -> str:
        """Of a node's proxy, from that node."""
        host = LOOPBACK if self.host in ("0.0.0.0", "::", "localhost") else self.host
        return f"http://{host}:{port}"


def ensure_serve(port: int = 0, *, every_node: bool = False) -> ServeAddress:
    """Starts Serve with its proxies on loopback, or joins the one that runs; port 0 = a free one.

    With `every_node` each node gets a proxy, on its own loopback: nothing is opened to the network.
    """
    from ray.serve.context import _get_global_client

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    client = _get_global_client(raise_if_no_controller_running=False)
    if client is not None:
        options = client.http_config
        everywhere = options.location == "EveryNode"
        return ServeAddress(options.host, options.port, False, everywhere)
    chosen = port or free_port()
    serve.start(
        proxy_location="EveryNode" if every_node else "HeadOnly",
        http_options={"host": LOOPBACK, "port": chosen},
        logging_config={"enable_access_log": False, "log_level": "WARNING"},
    )
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    return ServeAddress(LOOPBACK, chosen, True, every_node)


def free_port() -> int:
    """A port that was free on loopback just now."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def ray_processes() -> tuple[int, ...]:
    """Ray's and Serve's own processes on this host, as a worker of theirs sees them.

    The proxy, the controllers, the raylet and its agents: part of how an engine is reached, so not
    "others on the machine". Replicas are left out: the other arm's engine must count as one.
    """
    raylet = psutil.Process().parent()
    if raylet is None or raylet.name() != "raylet":
        return ()
    found = [raylet.pid]
    for child in raylet.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if not any("ServeReplica" in word for word in child.cmdline()[:1]):
                found.append(child.pid)
    return tuple(found)
