"""What a sweep's folder knows: which trials ended, which pairs are whole, who may write."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import StoreError
from orchestrator.records import FailureClass, Outcome
from orchestrator.store import SweepFolder, TrialFolder
from tests.run.fakes import trial
from tests.store.test_blocks import BLOCK


def _save_pair(folder: TrialFolder, index: int) -> None:
    for arm in ("baseline", "speculative"):
        folder.save_block(replace(BLOCK, pair_index=index, arm=arm))  # type: ignore[arg-type]


def test_pairs_are_those_with_both_blocks_from_the_first_on(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    _save_pair(folder, 0)
    _save_pair(folder, 1)
    folder.save_block(replace(BLOCK, pair_index=2, arm="speculative"))
    assert [pair[0].pair_index for pair in folder.pairs()] == [0, 1]
    assert [block.arm for block in folder.pairs()[0]] == ["baseline", "speculative"]


def test_a_block_without_its_partner_is_put_aside_but_kept(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    _save_pair(folder, 0)
    lone = replace(BLOCK, pair_index=1, arm="speculative")
    for _ in range(2):
        folder.save_block(lone)
        assert folder.discard_unpaired() == 1
    names = sorted(path.name for path in folder.blocks_path.glob("unpaired-*.json"))
    assert names == ["unpaired-0-001-B.json", "unpaired-1-001-B.json"]
    assert len(folder.pairs()) == 1


def test_an_outcome_comes_back_with_its_class(tmp_path: Path) -> None:
    outcome = Outcome("t", "failed", FailureClass.OUT_OF_MEMORY, "no room", "log", 2, 1, 3.5)
    TrialFolder(tmp_path).save_outcome(outcome)
    assert TrialFolder(tmp_path).outcome() == outcome
    assert TrialFolder(tmp_path / "other").outcome() is None


def test_only_what_has_not_ended_runs_again(tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path)
    finished, failed, fresh = (trial(seed=seed) for seed in (1, 2, 3))
    sweep.trial(finished.id).save_outcome(Outcome(finished.id, "finished"))
    sweep.trial(failed.id).save_outcome(Outcome(failed.id, "failed", FailureClass.CRASHED, "x"))
    every = (finished, failed, fresh)
    assert sweep.unfinished(every) == (fresh,)
    assert sweep.unfinished(every, retry_failed=True) == (failed, fresh)


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from orchestrator.store import SweepFolder\n"
        "with SweepFolder(Path(sys.argv[1])).locked(): pass"
    )
    with SweepFolder(tmp_path).locked():
        second = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
        )
    assert second.returncode != 0
    assert "another sweep (process" in second.stderr
    with SweepFolder(tmp_path).locked():
        pass  # free again once the first has left


def test_a_folder_without_a_sweep_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"sweep\.json"):
        SweepFolder(tmp_path).manifest()
