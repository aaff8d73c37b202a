"""Which loads to measure next: worked examples, then what must hold for any ladder."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.refine import Bracket, NextRung, next_rungs


def test_the_geometric_middle() -> None:
    """Between 1 and 4 rps the next rung is 2."""
    found = next_rungs([1, 4], [Bracket(1, 4, "knee")], whole=False, rungs_left=3)
    assert found == (NextRung(2.0, "knee"),)


def test_whole_numbers_for_concurrency() -> None:
    """sqrt(4 * 16) = 8; sqrt(4 * 8) = 5.66 -> 6; between 4 and 5 there is none."""

    def middle(low: float, high: float) -> tuple[float, ...]:
        brackets = [Bracket(low, high, "knee")]
        return tuple(r.load for r in next_rungs([low, high], brackets, whole=True, rungs_left=1))

    assert middle(4, 16) == (8.0,)
    assert middle(4, 8) == (6.0,)
    assert middle(1, 3) == (2.0,)
    assert middle(4, 5) == ()


def test_close_enough() -> None:
    """4.6 / 4 = 1.15 is close enough, 4.7 / 4 is not."""
    assert next_rungs([4, 4.6], [Bracket(4, 4.6, "knee")], whole=False, rungs_left=1) == ()
    assert next_rungs([4, 4.7], [Bracket(4, 4.7, "knee")], whole=False, rungs_left=1) != ()


def test_an_unresolved_rung_inside_is_not_measured_again() -> None:
    """Between 1 and 8 the rung at 2 told nothing: the wider gap, 2..8, is cut at 4."""
    found = next_rungs([1, 2, 8], [Bracket(1, 8, "break-even")], whole=True, rungs_left=1)
    assert found == (NextRung(4.0, "break-even"),)


def test_one_rung_serves_two_brackets() -> None:
    brackets = [Bracket(2, 8, "break-even"), Bracket(2, 8, "knee")]
    found = next_rungs([2, 8], brackets, whole=True, rungs_left=5)
    assert found == (NextRung(4.0, "break-even; knee"),)


def test_the_first_bracket_comes_first() -> None:
    brackets = [Bracket(8, 32, "break-even"), Bracket(1, 4, "knee")]
    loads = [1, 4, 8, 32]
    assert [r.load for r in next_rungs(loads, brackets, whole=True, rungs_left=1)] == [16.0]
    assert [r.load for r in next_rungs(loads, brackets, whole=True, rungs_left=2)] == [16.0, 2.0]
    assert next_rungs(loads, brackets, whole=True, rungs_left=0) == ()


def test_a_rate_is_a_number_that_a_person_would_type() -> None:
    found = next_rungs([1, 2], [Bracket(1, 2, "knee")], whole=False, rungs_left=1)
    assert found[0].load == 1.41


def test_a_bracket_has_two_ends() -> None:
    with pytest.raises(ValueError, match=r"`0 < low < high` must hold.*low=4, high=4"):
        Bracket(4, 4, "knee")


levels = st.lists(st.integers(1, 2000), min_size=2, max_size=8, unique=True).map(sorted)


@given(levels, st.booleans(), st.floats(0.001, 1000), st.integers(0, 60))
def test_every_rung_is_new_inside_its_bracket_and_it_ends(
    loads: list[int], whole: bool, scale: float, rungs: int
) -> None:
    """Asked again and again with what was measured, it stops by itself or with its rungs."""
    measured = [float(x) for x in loads] if whole else [x * scale for x in loads]
    bracket = Bracket(measured[0], measured[-1], "knee")
    left = rungs
    while found := next_rungs(measured, [bracket], whole=whole, rungs_left=left):
        (rung,) = found
        assert bracket.low < rung.load < bracket.high
        assert rung.load not in measured
        assert not whole or rung.load == int(rung.load)
        measured.append(rung.load)
        left -= 1
    assert left >= 0
    if left:
        edges = sorted(measured)
        widest = max(itertools.pairwise(edges), key=lambda gap: gap[1] / gap[0])
        room = not whole or widest[1] - widest[0] > 1
        assert widest[1] / widest[0] <= 1.15 or not room or math.isclose(*widest)
