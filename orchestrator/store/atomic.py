"""Write, then rename: a file is there whole, or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError


def write_atomically(path: Path, write: Callable[[Path], object], *, durable: bool = True) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to disk, rename it to `path`.

    `durable=False` leaves the flush to the system: for what can be made again from the records.
    Raises: StoreError when the disk is full, read-only or the folder may not be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            if durable:
                with temporary.open("rb+") as file:
                    os.fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        hint = {
            errno.ENOSPC: "the disk is full: free some space and run the same command again",
            errno.EACCES: "the folder may not be written to: choose another with --results",
            errno.EROFS: "the file system is read-only: choose another folder with --results",
        }.get(error.errno or 0, "run the same command again once the cause is mended")
        raise StoreError(f"{path}: could not be written ({error.strerror}); {hint}") from error


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Canonical, readable JSON. Raises: StoreError; TypeError/ValueError if not plain JSON."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_atomically(path, lambda temporary: _write_text(temporary, text + "\n"), durable=durable)


def link_or_copy(source: str, target: str) -> object:
    """For `shutil.copytree`: records are written once and replaced whole, so a link to one is as
    good as a copy, and takes no room. Raises: OSError when neither can be made."""
    try:
        os.link(source, target)
        return target
    except OSError:
        return shutil.copy2(source, target)


def read_json(path: Path) -> Any:
    """Raises: StoreError when the file is missing or is no JSON, naming the file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path}: cannot be read back ({error}); move it away and run the sweep again: "
            "only what it held is measured anew"
        ) from error


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
