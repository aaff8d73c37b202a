"""Raw samples in bounded space, and a checkpoint that is judged like a whole soak."""

from __future__ import annotations

import itertools
from pathlib import Path

from orchestrator.store.soak_keeper import SoakFiles
from orchestrator.store.suite_folder import SuiteFolder
from tests.run.soak.test_parts import request


def test_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    files = SoakFiles(SuiteFolder(tmp_path), "id", raw_bytes=60_000)
    for window in range(30):
        files.raw(window, "baseline", [request(window)])
    kept = sorted(path.name for path in (tmp_path / "raw").iterdir())
    assert sum(path.stat().st_size for path in (tmp_path / "raw").iterdir()) <= 60_000
    assert kept[0] == "00000-A.parquet" and kept[-1] == "00029-A.parquet"
    numbers = [int(name[:5]) for name in kept]
    gaps = [b - a for a, b in itertools.pairwise(numbers)]
    assert sorted(gaps)[-2] == 1 < max(gaps), "one stretch in the middle is gone"


def test_nothing_to_keep_writes_nothing(tmp_path: Path) -> None:
    SoakFiles(SuiteFolder(tmp_path), "id", raw_bytes=1e6).raw(0, "speculative", [])
    assert not (tmp_path / "raw").exists()
