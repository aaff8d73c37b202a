"""Cells between cells: predicted from a machine and a draft whose laws are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.left_out import GridCell, left_out, predictions
from orchestrator.measure.acceptance import expected_acceptance_length


def _cell(
    length: int, batch: int, *, acceptance: float = 0.6, noise: float = 0.0, seed: int = 0
) -> GridCell:
    """Steps that cost more the more tokens they verify; a draft accepted independently."""
    tokens = expected_acceptance_length(acceptance, length)
    needed = (1 + 0.03 * batch * (1 + length) + 0.05 * length) / (1 + 0.03 * batch)
    rng = np.random.default_rng([seed, length, batch])
    off, other = np.exp(rng.normal(0, noise, 2)) if noise else (1.0, 1.0)
    return GridCell(length, batch, tokens * off, needed * other, tokens / needed)


def _grid(**how: float) -> list[GridCell]:
    return [_cell(k, b, **how) for k in (1, 2, 4, 8) for b in (1, 2, 4, 8, 16)]  # type: ignore[arg-type]


@given(acceptance=st.floats(0.2, 0.9))
def test_a_left_out_cell_is_predicted_within_a_few_percent(acceptance: float) -> None:
    found = left_out(_grid(acceptance=acceptance), confidence=0.95)
    assert len(found) == 20 - 4
    errors = [abs(one.error) for one in found if one.error is not None]
    assert float(np.median(errors)) < 0.06


def test_intervals_hold_as_often_as_they_say() -> None:
    inside = total = 0
    for seed in range(40):
        for one in left_out(_grid(noise=0.03, seed=seed), confidence=0.9):
            assert one.measured is not None
            inside += one.low <= one.measured <= one.high
            total += 1
    assert inside / total >= 0.9


def test_only_inside_what_was_measured_and_nothing_that_was() -> None:
    cells = [_cell(k, b) for k in (1, 2, 4) for b in (1, 4, 8)]
    found = predictions(cells, confidence=0.95)
    assert {(one.speculation_length, one.batch) for one in found} == {
        *((3, b) for b in (1, 2, 4, 8)),
        *((k, 2) for k in (1, 2, 4)),
    }
    for one in found:
        assert one.low < one.speedup < one.high and one.measured is None
        assert one.speedup == pytest.approx(one.tokens_per_step / one.break_even_acceptance_length)
        exact = _cell(one.speculation_length, one.batch).speedup
        assert exact is not None and abs(math.log(one.speedup / exact)) < 0.1


def test_corners_are_not_predicted_from_the_rest() -> None:
    found = left_out([_cell(k, b) for k in (1, 2, 4) for b in (1, 4, 8)], confidence=0.95)
    assert {(one.speculation_length, one.batch) for one in found} == {
        (1, 4), (2, 1), (2, 4), (2, 8), (4, 4),
    }  # fmt: skip


def test_too_few_cells_give_nothing() -> None:
    cells = [_cell(1, 1), _cell(4, 1)]
    assert predictions(cells, confidence=0.95) == []
    assert left_out(cells, confidence=0.95) == []
    assert predictions([], confidence=0.95) == []


def test_along_one_axis_alone() -> None:
    cells = [_cell(k, 4) for k in (1, 2, 4, 6)]
    found = predictions(cells, confidence=0.95)
    assert [(one.speculation_length, one.batch) for one in found] == [(3, 4), (5, 4)]
