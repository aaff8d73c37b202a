"""The disk fills up while trials in Ray Tune write their records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import StoreError
from tests.small_disk import disk
from tests.survival import room
from tests.sweep.world import RememberingTracker

pytestmark = [pytest.mark.ray, pytest.mark.slow]
__all__ = ["disk"]


def test_the_sweep_ends_and_says_so_and_the_same_command_goes_on(
    ray_address: str, tmp_path: Path, disk: tuple[Path, Callable[[str], None]]
) -> None:
    results, resize = disk
    file = room.write_experiment(tmp_path, "full", {}, lengths=[1], pairs=8)
    room.use_stand_ins()
    with pytest.raises(StoreError, match="the disk is full: free some space and run the same"):
        room.run(file, results, RememberingTracker, print)
    assert not room.with_open_files_under(results)
    kept = room.blocks(results)
    assert kept
    resize("64m")
    finished = room.run(file, results, RememberingTracker, print)
    now = room.blocks(results)
    assert {path: at for path, at in kept.items() if path in now}.items() <= now.items()
    assert len(kept.keys() - now.keys()) <= 1  # a block whose partner did not fit is put aside
    assert all(trial.outcome is not None for trial in finished.result.every)
