"""A way that is slowed, cut and healed; the server behind it is an echo."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from orchestrator.adapters.faults.proxy import Proxy


@pytest.fixture
def echo() -> Iterator[str]:
    """The address of a server that says back what it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(connection: socket.socket) -> None:
            with connection, suppress(ConnectionError):
                while said := connection.recv(4096):
                    connection.sendall(said)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/base"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo: str) -> Iterator[Proxy]:
    made = Proxy(echo)
    yield made
    made.close()


def connected(proxy: Proxy) -> socket.socket:
    port = int(proxy.base_url.rpartition(":")[2].partition("/")[0])
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def said_back(connection: socket.socket, text: bytes) -> bytes:
    connection.sendall(text)
    return connection.recv(4096)


def test_bytes_pass_and_the_path_stays(proxy: Proxy, echo: str) -> None:
    assert proxy.base_url.endswith("/base") and proxy.base_url != echo
    with connected(proxy) as connection:
        assert said_back(connection, b"hello") == b"hello"


def test_cut_resets_what_is_open_and_what_comes_and_healed_it_passes_again(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert said_back(connection, b"one") == b"one"
        proxy.cut()
        with pytest.raises(ConnectionError):
            for _ in range(500):  # the proxy hears of it a moment later
                said_back(connection, b"two")
                time.sleep(0.01)
    with pytest.raises(ConnectionError), connected(proxy) as connection:
        if not said_back(connection, b"three"):
            raise ConnectionResetError("closed without an answer")
    proxy.heal()
    with connected(proxy) as connection:
        assert said_back(connection, b"four") == b"four"


def test_slowed_every_piece_takes_its_time_both_ways(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert said_back(connection, b"one") == b"one"
        proxy.slow(0.1)
        began = time.monotonic()
        assert said_back(connection, b"two") == b"two"
        assert time.monotonic() - began >= 0.2


def test_closing_it_twice_is_once(proxy: Proxy) -> None:
    proxy.close()
    proxy.close()
