"""A file system that is small, for real."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """A mounted file system of 300 KiB, and what gives it another size."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        subprocess.run(command, check=True, capture_output=True, text=True)

    try:
        mount("size=300k")
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", None) or error
        pytest.skip(f"NOT TESTED: a full disk; mounting a small file system needs root ({why})")
    try:
        yield folder, lambda size: mount(f"remount,size={size}")
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
