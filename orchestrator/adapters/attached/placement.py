"""Whether a server runs on this host, and as which processes."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import psutil

from orchestrator.adapters.http.request import origin_of

FORWARDERS = frozenset(
    {"docker-proxy", "envoy", "haproxy", "kubectl", "nginx", "rootlessport", "socat", "ssh"}
)
"""Programs that listen here for a server which runs elsewhere (or in a namespace of its own)."""


def on_this_host(url: str) -> bool:
    """Whether the address is one of this host's, and what listens there is no forwarder.

    A name that cannot be resolved is not this host's.
    """
    return _is_own_address(urlsplit(url).hostname or "") and not _forwarded(origin_of(url).port)


def server_pids(url: str) -> tuple[int, ...]:
    """The processes that listen at a port of this host. Empty: elsewhere, or not for us to see."""
    if not on_this_host(url):
        return ()
    return tuple(sorted(process.pid for process in _listeners(origin_of(url).port)))


def _is_own_address(host: str) -> bool:
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    own = {
        address.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
    }
    return bool(found) and all(
        address in own or address == "::1" or address.startswith("127.") for address in found
    )


def _forwarded(port: int) -> bool:
    return any(process.name() in FORWARDERS for process in _listeners(port))


def _listeners(port: int) -> list[psutil.Process]:
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return []
    found = []
    for connection in connections:
        if connection.status != psutil.CONN_LISTEN or not connection.laddr:
            continue
        if connection.laddr.port == port and connection.pid is not None:
            try:
                found.append(psutil.Process(connection.pid))
            except psutil.NoSuchProcess:
                continue
    return list({process.pid: process for process in found}.values())
