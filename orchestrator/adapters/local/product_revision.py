"""Which source of the product is running, and whether it was modified."""

from __future__ import annotations

import os
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[2]
DISTRIBUTION = "speculation-orchestrator"


def product_revision(package: Path = PACKAGE) -> dict[str, Any]:
    """`version`, `revision` (commit), `describe`, `modified` (tracked files differ from it).

    Undefined: None without git, or when the package does not belong to the repository around it
    (an installed copy inside somebody's checkout is not that checkout).
    """
    unknown = {"version": _version(), "revision": None, "describe": None, "modified": None}
    top = _git(package, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() / package.name != package.resolve():
        return unknown
    revision = _git(package, "rev-parse", "HEAD")
    if revision is None:
        return unknown
    changes = _git(package, "status", "--porcelain", "--untracked-files=no")
    return {
        **unknown,
        "revision": revision,
        "describe": _git(package, "describe", "--always", "--tags", "--dirty"),
        "modified": None if changes is None else bool(changes),
    }


def _git(folder: Path, *arguments: str) -> str | None:
    # GIT_DIR and its kin would make git answer for another repository than the folder's.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env={**clean, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version() -> str | None:
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
