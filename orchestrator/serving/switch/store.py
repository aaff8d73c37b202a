"""What the switch's processes share: two SQLite files in the state folder.

`switch.db` outlives everything: settings, the audit log, the verdict; every change is on the disk
before it is obeyed. `live.db` is what replicas tell the keeper: worth nothing after a crash.
Several processes of one machine use both at once. A connection belongs to one thread at a time.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.errors import StoreError
from orchestrator.switch.observation import Observation
from orchestrator.switch.policy import Policy
from orchestrator.switch.settings import Event, Settings
from orchestrator.switch.verdict import Verdict, verdict_as_plain, verdict_from

_DURABLE = """
CREATE TABLE IF NOT EXISTS settings (
  version INTEGER PRIMARY KEY, at_s REAL NOT NULL, who TEXT NOT NULL,
  why TEXT NOT NULL, policy TEXT NOT NULL, paused INTEGER NOT NULL,
  policy_version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at_s REAL NOT NULL, who TEXT NOT NULL,
  what TEXT NOT NULL, why TEXT NOT NULL, evidence TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS verdict (one INTEGER PRIMARY KEY CHECK (one = 1), plain TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS secret (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_LIVE = """
CREATE TABLE IF NOT EXISTS replica (name TEXT PRIMARY KEY, at_s REAL NOT NULL, plain TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS seen (id INTEGER PRIMARY KEY AUTOINCREMENT, plain TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS keeper (
  one INTEGER PRIMARY KEY CHECK (one = 1), at_s REAL NOT NULL, figures TEXT NOT NULL);
"""
for _table in ("settings", "audit"):
    for _act in ("UPDATE", "DELETE"):
        _DURABLE += (
            f"CREATE TRIGGER IF NOT EXISTS {_table}_{_act.lower()} BEFORE {_act} ON {_table} "
            f"BEGIN SELECT RAISE(ABORT, '{_table} is only added to'); END;\n"
        )
_LAST = (
    "SELECT version, policy, paused, at_s, who, why, policy_version FROM settings "
    "ORDER BY version DESC LIMIT 1"
)
MOST_SEEN = 50_000
"""Observations kept while no keeper takes them."""
T = TypeVar("T")


class SwitchStore:
    """Opens both files, and makes what is missing. Raises: StoreError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._durable = _open(folder / "switch.db", _DURABLE, "FULL")
            self._live = _open(folder / "live.db", _LIVE, "OFF")
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"{folder}: the switch's state cannot be opened ({error}); "
                "give the folder back, or start with another `state`"
            ) from error

    def close(self) -> None:
        with self._lock:
            self._durable.close()
            self._live.close()

    # Settings and the audit log

    def settings(self) -> Settings | None:
        rows = self._read(self._durable, _LAST)
        return _settings(rows[0]) if rows else None

    def change(
        self,
        alter: Callable[[Settings | None], tuple[Policy, bool] | None],
        *,
        what: str,
        who: str,
        why: str,
        at_s: float,
    ) -> Settings:
        """A new version made of the last one, with its line in the audit log: both or neither.

        `alter` gets the settings as they stand, none before the first, and returns policy and
        whether paused; None leaves everything as it is.
        """
        with self._write(self._durable) as cursor:
            row = cursor.execute(_LAST).fetchone()
            before = None if row is None else _settings(row)
            altered = alter(before)
            if altered is None:
                assert before is not None, "the first settings cannot be left as they are"
                return before
            policy, paused = altered
            version = 1 if before is None else before.version + 1
            kept = before is not None and before.policy == policy
            brought = before.policy_version if before is not None and kept else version
            plain = policy.model_dump(mode="json", exclude_none=True)
            cursor.execute(
                "INSERT INTO settings VALUES (?, ?, ?, ?, ?, ?, ?)",
                (version, at_s, who, why, json.dumps(plain), int(paused), brought),
            )
            evidence = {"version": version, "policy": plain, "paused": paused}
            if before is not None:
                evidence["before"] = before.policy.model_dump(mode="json", exclude_none=True)
            _note(cursor, Event(0, at_s, who, what, why, evidence))
        return Settings(version, policy, paused, at_s, who, why, brought)

    def note(self, what: str, why: str, evidence: Mapping[str, Any], *, at_s: float) -> None:
        """A line in the audit log of something the switch did by itself."""
        with self._write(self._durable) as cursor:
            _note(cursor, Event(0, at_s, "switch", what, why, dict(evidence)))

    def events(self, *, after: int = 0, most: int = 200) -> list[Event]:
        """In order; without `after` the last ones."""
        order = "ASC" if after else "DESC"
        rows = self._read(
            self._durable,
            "SELECT id, at_s, who, what, why, evidence FROM audit WHERE id > ? "
            f"ORDER BY id {order} LIMIT ?",
            (after, most),
        )
        found = [
            Event(number, at_s, who, what, why, json.loads(evidence))
            for number, at_s, who, what, why, evidence in rows
        ]
        return found if after else found[::-1]

    # The verdict

    def verdict(self) -> Verdict:
        rows = self._read(self._durable, "SELECT plain FROM verdict")
        return verdict_from(json.loads(rows[0][0])) if rows else Verdict()

    def decide(self, verdict: Verdict) -> None:
        text = json.dumps(verdict_as_plain(verdict))
        with self._write(self._durable) as cursor:
            cursor.execute("INSERT OR REPLACE INTO verdict VALUES (1, ?)", (text,))

    def changed(self) -> int:
        """Another number after another process has changed settings, audit log or verdict."""
        return int(self._read(self._durable, "PRAGMA data_version")[0][0])

    def secret(self, name: str, make: Callable[[], str]) -> str:
        """A secret of this switch, made once."""
        with self._write(self._durable) as cursor:
            cursor.execute("INSERT OR IGNORE INTO secret VALUES (?, ?)", (name, make()))
            row = cursor.execute("SELECT value FROM secret WHERE name = ?", (name,)).fetchone()
        return str(row[0])

    # What replicas tell

    def tell(
        self, replica: str, at_s: float, plain: Mapping[str, Any], seen: Sequence[Observation]
    ) -> None:
        with self._write(self._live) as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO replica VALUES (?, ?, ?)",
                (replica, at_s, json.dumps(plain)),
            )
            cursor.executemany(
                "INSERT INTO seen (plain) VALUES (?)",
                [(json.dumps(asdict(one)),) for one in seen],
            )
            cursor.execute(
                "DELETE FROM seen WHERE id <= (SELECT max(id) FROM seen) - ?", (MOST_SEEN,)
            )

    def leave(self, replica: str) -> None:
        with self._write(self._live) as cursor:
            cursor.execute("DELETE FROM replica WHERE name = ?", (replica,))

    def told(self, since_s: float) -> dict[str, dict[str, Any]]:
        """What each replica said last; those silent since before `since_s` are not there."""
        rows = self._read(
            self._live, "SELECT name, at_s, plain FROM replica WHERE at_s >= ?", (since_s,)
        )
        return {name: {"at_s": at_s, **json.loads(plain)} for name, at_s, plain in rows}

    def take_seen(self) -> list[Observation]:
        """Observations that no keeper has taken yet; they are then gone from here."""
        with self._write(self._live) as cursor:
            rows = cursor.execute("SELECT id, plain FROM seen ORDER BY id LIMIT 5000").fetchall()
            if rows:
                cursor.execute("DELETE FROM seen WHERE id <= ?", (rows[-1][0],))
        return [Observation(**json.loads(plain)) for _, plain in rows]

    def beat(self, at_s: float, figures: Mapping[str, Any]) -> None:
        """The keeper is alive, and this is what it sees."""
        with self._write(self._live) as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO keeper VALUES (1, ?, ?)", (at_s, json.dumps(figures))
            )

    def last_beat(self) -> tuple[float, dict[str, Any]] | None:
        rows = self._read(self._live, "SELECT at_s, figures FROM keeper")
        return (rows[0][0], json.loads(rows[0][1])) if rows else None

    # SQLite

    def _read(
        self, connection: sqlite3.Connection, query: str, values: tuple[Any, ...] = ()
    ) -> list[Any]:
        with self._lock, _told(self.folder):
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _write(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
        with self._lock, _told(self.folder):
            cursor = connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
            except BaseException:
                connection.rollback()
                raise
            connection.commit()


def _settings(row: Sequence[Any]) -> Settings:
    version, policy, paused, at_s, who, why, brought = row
    read = Policy.model_validate(json.loads(policy))
    return Settings(version, read, bool(paused), at_s, who, why, brought)


def _note(cursor: sqlite3.Cursor, event: Event) -> None:
    cursor.execute(
        "INSERT INTO audit (at_s, who, what, why, evidence) VALUES (?, ?, ?, ?, ?)",
        (event.at_s, event.who, event.what, event.why, json.dumps(event.evidence)),
    )


def _open(path: Path, schema: str, synchronous: str) -> sqlite3.Connection:
    path.touch(mode=0o600)
    connection = sqlite3.connect(
        path, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.executescript(schema)
    return connection


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            f"{folder}: the switch's state cannot be used ({error}); is the disk full?"
        ) from error
