"""A way to a server that can be slowed, cut and healed: it hands bytes on, in a thread of its own.

It stands in both arms' ways alike, and only where the schedule has a fault of the network.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from urllib.parse import urlsplit, urlunsplit

PIECE = 65536
_START_S = 10.0


class Proxy:
    """Listens on the loopback; `address` stands for the server's in a base URL."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or 80
        self._parts = parts
        self._delay_s, self._cut = 0.0, False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._own_port = 0
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        if not self._listening.wait(_START_S):
            raise OSError(f"no proxy to {base_url} could be opened within {_START_S:g} s")

    @property
    def base_url(self) -> str:
        netloc = f"127.0.0.1:{self._own_port}"
        return urlunsplit(self._parts._replace(netloc=netloc))

    def slow(self, delay_s: float) -> None:
        """Every piece, either way, comes so much later."""
        self._delay_s = delay_s

    def cut(self) -> None:
        """Connections are reset, and new ones, too, until it is healed."""
        self._cut = True
        self._loop.call_soon_threadsafe(self._abort_all)

    def heal(self) -> None:
        self._delay_s, self._cut = 0.0, False

    def close(self) -> None:
        """Connections are reset. May be called twice."""
        if not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it ended in this moment
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self._own_port = server.sockets[0].getsockname()[1]
        self._listening.set()
        self._loop.run_forever()
        self._abort_all()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        there = None
        try:
            if self._cut:
                return
            back, there = await asyncio.open_connection(self._host, self._port)
            self._writers.add(there)
            await asyncio.gather(self._hand_on(reader, there), self._hand_on(back, writer))
        except OSError:
            return  # either end is gone: so is the other, below
        finally:
            for end in (writer, there):
                if end is not None:
                    self._writers.discard(end)
                    if self._cut:
                        _reset(end)
                    else:
                        end.close()

    async def _hand_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Ends both ways when one ends: a server that closes, closes."""
        while piece := await source.read(PIECE):
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            sink.write(piece)
            await sink.drain()
        raise ConnectionResetError("one end has closed")

    def _abort_all(self) -> None:
        for writer in list(self._writers):
            _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    """With a reset, not a farewell: as when the way itself is gone."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
