"""Messages between this product's own processes, over a pipe: a length, then a pickle."""

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct("!Q")


def write_message(stream: BinaryIO, message: Any) -> None:
    payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def read_message(stream: BinaryIO) -> Any:
    """Raises: EOFError when the other side is gone."""
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    return pickle.loads(_read_exactly(stream, length))  # noqa: S301  (our own process's pipe)


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    payload = stream.read(size)
    if len(payload) < size:
        raise EOFError("the pipe to the other process is closed")
    return payload
