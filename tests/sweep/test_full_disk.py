"""A file system that really fills up while records are written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.errors import StoreError
from tests.sweep.world import run_story, write_experiment


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


def test_a_full_disk_ends_the_sweep_and_the_same_goes_on_where_it_was(
    disk: tuple[Path, Callable[[str], None]], tmp_path: Path
) -> None:
    folder, resize = disk
    file = write_experiment(tmp_path)
    with pytest.raises(StoreError, match="the disk is full: free some space and run the same"):
        run_story(file, folder)
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("*/*/blocks/0*.json")}
    assert len(kept) >= 2
    assert not list(folder.glob("*/*/blocks/.*.tmp"))
    resize("64m")
    finished = run_story(file, folder)
    assert not any(trial.failed for trial in finished.result.every)
    now = {path: path.stat().st_mtime_ns for path in folder.glob("*/*/blocks/*0*.json")}
    measured = {path: when for path, when in kept.items() if path in now}
    assert measured.items() <= now.items()
    assert len(kept) - len(measured) <= 1  # a block whose partner did not fit is put aside
