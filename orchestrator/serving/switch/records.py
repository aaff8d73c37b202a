"""One JSON line a request, in files of bounded size and number. Without texts unless asked for."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import orjson

from orchestrator.switch.config import Records

MOST_WAITING = 20_000


class RequestFiles:
    """`add` is for the event loop and touches no disk; `write` is for a thread."""

    def __init__(self, settings: Records, folder: Path, replica: str) -> None:
        self._settings, self._folder, self._replica = settings, folder, replica
        self._waiting: deque[dict[str, Any]] = deque(maxlen=MOST_WAITING)
        self._number = 0

    def add(self, line: dict[str, Any]) -> None:
        if self._settings.keep:
            self._waiting.append(line)

    def write(self) -> None:
        """Raises: OSError; what could not be written is then lost, and the service goes on."""
        if not self._waiting:
            return
        lines = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._file()
        with path.open("ab") as file:
            path.chmod(0o600)
            file.write(b"".join(orjson.dumps(line) + b"\n" for line in lines))

    def _file(self) -> Path:
        path = self._path(self._number)
        if path.exists() and path.stat().st_size >= self._settings.file_bytes:
            self._number += 1
            path = self._path(self._number)
            mine = sorted(self._folder.glob("*.jsonl"), key=lambda one: one.stat().st_mtime)
            for old in mine[: max(0, len(mine) - self._settings.files + 1)]:
                old.unlink(missing_ok=True)
        return path

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._replica}-{number:06d}.jsonl"
