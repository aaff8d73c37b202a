"""Keep-alive connections to one server."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass

from orchestrator.adapters.http.connection import Connection
from orchestrator.adapters.http.request import Origin


@dataclass(frozen=True, slots=True)
class Tls:
    """How a server's certificate is judged: by the system's authorities, or by `ca_file`."""

    ca_file: str | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class ConnectionPool:
    """Hands out idle connections, last used first; opens one when there is none.

    Proxies from the environment are ignored on purpose: a proxy between client and server would be
    measured as part of the server.
    """

    def __init__(self, origin: Origin, tls: Tls) -> None:
        self._origin = origin
        self._context = tls.context() if origin.tls else None
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()

    def take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
        return None

    async def connect(self, timeout_s: float) -> Connection:
        """Raises: TimeoutError, or OSError (ssl.SSLError among them)."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(
                lambda: Connection(self._forget),
                self._origin.host,
                self._origin.port,
                ssl=self._context,
                server_hostname=self._origin.host if self._context else None,
            )
        self._all.add(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        if connection.open:
            self._idle.append(connection)

    async def warm(self, count: int, timeout_s: float) -> None:
        """Opens up to `count` idle connections, so that no request has to wait for its own.

        A server that refuses is left for the requests to find out: they record it.
        """
        missing = count - sum(connection.open for connection in self._idle)
        if missing <= 0:
            return
        made = await asyncio.gather(
            *(self.connect(timeout_s) for _ in range(missing)), return_exceptions=True
        )
        for connection in made:
            if isinstance(connection, Connection):
                self.give_back(connection)
            elif not isinstance(connection, OSError | TimeoutError):
                raise connection

    def close(self) -> None:
        for connection in list(self._all):
            connection.close()
        self._idle.clear()

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
