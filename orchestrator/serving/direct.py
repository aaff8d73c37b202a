"""An engine's own address: a socket that only its user can open, beside Serve or in its place."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import uvicorn

KEEP_ALIVE_S = 60
LONGEST_PATH = 100
"""Bytes; the kernel's limit is 107."""


class DirectServer:
    """Serves an ASGI app on a Unix socket in the running event loop, until `close`."""

    def __init__(self, app: Any, path: Path) -> None:
        if len(os.fsencode(path)) > LONGEST_PATH:
            raise ValueError(f"{path}: a socket's path must be at most {LONGEST_PATH} bytes long")
        self._path = path
        config = uvicorn.Config(
            app,
            lifespan="off",
            access_log=False,
            log_level="warning",
            timeout_keep_alive=KEEP_ALIVE_S,
            log_config=None,
        )
        self._server = uvicorn.Server(config)
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Takes the path over from an engine that was there before. Raises: OSError"""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Under the umask nobody else can open it even before its mode is set.
        before = os.umask(0o177)
        try:
            listening.bind(str(self._path))
        finally:
            os.umask(before)
        self._server.config.load()
        self._task = asyncio.create_task(self._serve(listening))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.01)
        if self._task.done():
            await self._task

    async def _serve(self, listening: socket.socket) -> None:
        # Signals are Serve's affair: `uvicorn.Server.serve` would take them over.
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup(sockets=[listening])
        await self._server.main_loop()
        await self._server.shutdown(sockets=[listening])

    async def close(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        if self._task is not None:
            await self._task
