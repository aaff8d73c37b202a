"""How SQLite writes the local tracking store: one writer, several who look on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy

from orchestrator.adapters.local.storage_medium import storage

_PREFIX = "sqlite:///"


def write_ahead(uri: str) -> None:
    """From here on this process's connections to SQLite append to a log beside the file.

    A run is some nine transactions, and each would wait for the disk twice; so none has to, readers
    are not shut out, and a crash of the machine loses the last of them at most (`track` makes up
    for it). The log needs memory that all readers share: on a network file system nothing changes,
    and neither does it where `uri` is a server.
    """
    if _may(uri) and not sqlalchemy.event.contains(
        sqlalchemy.engine.Engine, "connect", _on_connect
    ):
        sqlalchemy.event.listen(sqlalchemy.engine.Engine, "connect", _on_connect)


def _may(uri: str) -> bool:
    if not uri.startswith(_PREFIX):
        return False
    return bool(storage(Path(uri.removeprefix(_PREFIX)))["medium"] != "network")


def _on_connect(connection: Any, _record: Any) -> None:
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
