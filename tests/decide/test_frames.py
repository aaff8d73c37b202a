"""Tidy frames of a sweep: documented columns, nothing undefined as 0, a light import."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import orchestrator
from orchestrator.decide.frames import CELL_COLUMNS, PAIR_COLUMNS, REQUEST_COLUMNS, SweepFrames
from orchestrator.errors import StoreError
from orchestrator.records import FailureClass
from orchestrator.store import SweepFolder
from tests.decide.results_by_hand import blocks_of, result_of, sweep_of, trial_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "results-api.md"


def test_cells_and_pairs(tmp_path: Path) -> None:
    failed = result_of(trial_of(load=2), failure=FailureClass.CRASHED)
    frames = SweepFrames(sweep_of(result_of(trial_of(), 1.4), failed), SweepFolder(tmp_path))
    assert tuple(frames.cells.columns) == CELL_COLUMNS
    assert tuple(frames.pairs.columns) == PAIR_COLUMNS
    assert list(frames.cells.kind) == ["aa_control", "comparison", "comparison"]
    row = frames.cells[frames.cells.load == 1].iloc[-1]
    assert row.speedup_throughput_low < row.speedup_throughput < row.speedup_throughput_high
    assert row.verdict == "faster"
    lost = frames.cells[frames.cells.failure == "crashed"].iloc[0]
    assert lost.isna().speculative_tpot_mean_s
    assert lost.isna().verdict
    pairs = frames.pairs[frames.pairs.trial_id == row.trial_id]
    assert len(pairs) == 6
    assert pairs.valid.all()


def test_requests_are_read_from_the_records(tmp_path: Path) -> None:
    trial, folder = trial_of(load=2), SweepFolder(tmp_path)
    for index in range(3):
        for block in blocks_of(index, 1.4, level=2):
            folder.trial(trial.id).save_block(block)
    result = sweep_of(result_of(trial, [1.4] * 3))
    frame = SweepFrames(replace(result, controls=()), folder).requests
    assert tuple(frame.columns) == REQUEST_COLUMNS
    assert len(frame) == 3 * 2 * 2
    means = frame.groupby("arm").tpot_s.mean()
    assert means["baseline"] / means["speculative"] == pytest.approx(1.4)


def test_every_column_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    ends = ("_low", "_high")
    for column in {*CELL_COLUMNS, *PAIR_COLUMNS, *REQUEST_COLUMNS}:
        name = column.removeprefix("baseline_").removeprefix("speculative_")
        for end in ends:
            name = name.removesuffix(end)
        assert f"`{column}`" in text or f"`{name}`" in text, column


def test_no_such_sweep(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no sweep is stored here"):
        orchestrator.results("nothing", folder=tmp_path)


def test_the_import_is_light() -> None:
    code = (
        "import sys, orchestrator; orchestrator.results; "
        "print(sorted({'pandas', 'numpy', 'ray', 'mlflow', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
