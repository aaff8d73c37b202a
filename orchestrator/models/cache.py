"""Where prepared models live, and how it is known that one is whole."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

CACHE_VARIABLE = "ORCHESTRATOR_CACHE"
MANIFEST = "orchestrator-manifest.json"
FORMAT = 1
"""Version of what preparation writes: another version is prepared anew."""


def cache_folder() -> Path:
    """`$ORCHESTRATOR_CACHE`, or `~/.cache/speculation-orchestrator`."""
    given = os.environ.get(CACHE_VARIABLE)
    return (
        Path(given).expanduser().resolve()
        if given
        else Path.home() / ".cache/speculation-orchestrator"
    )


def model_folder(name: str) -> Path:
    """Where the prepared model of that catalogue name is, or will be."""
    return cache_folder() / "models" / name


def training_folder(name: str) -> Path:
    """Where the training of a draft of that name works, and leaves what can be served."""
    return cache_folder() / "drafts" / name


SERVED = "served"
"""Of a training's folder, the part that an engine loads; there only when it is whole."""


@dataclass(frozen=True)
class FileFact:
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a prepared folder holds; written last, so that a folder without one is unfinished."""

    name: str
    source: str
    source_sha256: str
    files: Mapping[str, FileFact]
    format: int = FORMAT

    @property
    def weights_hash(self) -> str:
        """SHA-256 over the hashes of all files: changes with any byte of the model."""
        lines = [f"{name} {fact.sha256}\n" for name, fact in sorted(self.files.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def describe(folder: Path, *, name: str, source: str, source_sha256: str) -> Manifest:
    """The manifest of the files that are in `folder` now."""
    files = {
        path.relative_to(folder).as_posix(): FileFact(path.stat().st_size, sha256_of(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }
    return Manifest(name=name, source=source, source_sha256=source_sha256, files=files)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a prepared folder that is whole, by names and sizes; None otherwise.

    Hashes are not computed again here (that takes a second per model): see `verify`.
    """
    try:
        fields = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = {name: FileFact(**fact) for name, fact in fields.pop("files").items()}
        manifest = Manifest(files=files, **fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if manifest.format != FORMAT:
        return None
    for name, fact in manifest.files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != fact.bytes:
            return None
    return manifest


def verify(folder: Path, manifest: Manifest) -> list[str]:
    """Names of files whose content is not what the manifest says."""
    return [
        name for name, fact in manifest.files.items() if sha256_of(folder / name) != fact.sha256
    ]


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Only one process at a time prepares `folder`; the lock goes with the process that held it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def working_folder(folder: Path) -> Path:
    """A fresh temporary folder beside `folder`; what an earlier, killed run left is removed.

    To be called with the lock held: only then is every leftover dead.
    """
    for leftover in folder.parent.glob(f".{folder.name}.*.partial"):
        shutil.rmtree(leftover)
    made = folder.parent / f".{folder.name}.{os.getpid()}.partial"
    made.mkdir()
    return made


def put_in_place(made: Path, folder: Path) -> None:
    """Makes the finished `made` appear as `folder` in one step; an unusable `folder` goes first."""
    if folder.exists():
        shutil.rmtree(folder)
    made.rename(folder)
