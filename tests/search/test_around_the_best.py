"""Neighbours of a cell, and a search that looks there every second time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from orchestrator.plan.axes import Space
from orchestrator.search.around_the_best import AroundTheBest
from orchestrator.search.proposer import GridProposer, Told
from tests.search.cells import comparisons

SPACE = Space.of(comparisons())
ALL = list(range(len(SPACE.points)))


def cell(method: str, **values: float | str) -> int:
    wanted = {"method": method, **values}
    (found,) = (i for i in ALL if all(SPACE.points[i].get(n) == v for n, v in wanted.items()))
    return found


def ngram(window: float, length: float, batch: float) -> int:
    return cell("ngram", prompt_lookup_max=window, speculation_length=length, batch_size=batch)


def draft(name: str, length: float, batch: float) -> int:
    return cell("draft_model", draft=name, speculation_length=length, batch_size=batch)


def told(index: int, value: float | None, bound: float = -1.0) -> Told:
    values = None if value is None else (value,)
    end = "failed" if value is None else "finished"
    return Told(index, end, values, {"tpot_p95_s": bound}, 6)  # type: ignore[arg-type]


def proposer(*known: Told, lower: bool = False, seed: int = 1) -> AroundTheBest:
    made = AroundTheBest(GridProposer(), SPACE, lower, Random(seed), startup=len(known))
    for one in known:
        made.tell(one)
    return made


def left(*taken: int) -> Sequence[int]:
    return [index for index in ALL if index not in taken]


def test_neighbours_are_one_step_away_on_one_axis_or_the_most_alike_of_another_method() -> None:
    assert set(SPACE.neighbours(ngram(3, 4, 1))) == {
        ngram(3, 2, 1),
        ngram(3, 8, 1),
        ngram(5, 4, 1),
        ngram(3, 4, 8),
        draft("small", 4, 1),
    }
    assert draft("large", 4, 1) in SPACE.neighbours(draft("small", 4, 1))


def test_at_the_end_of_an_axis_there_is_one_way_to_go() -> None:
    lengths = {SPACE.points[i]["speculation_length"] for i in SPACE.neighbours(ngram(3, 8, 1))}
    assert lengths == {4.0, 8.0}


def test_neighbours_of_every_cell_are_other_cells() -> None:
    for index in ALL:
        assert SPACE.neighbours(index)
        assert index not in SPACE.neighbours(index)


def test_every_second_proposal_is_beside_the_best_and_the_others_are_not_touched() -> None:
    best, worse = ngram(3, 4, 1), draft("large", 1, 8)
    search = proposer(told(best, 2.0), told(worse, 1.0))
    there = left(best, worse)
    assert search.propose(there, frozenset(), 1) in SPACE.neighbours(best)
    assert search.propose(there, frozenset(), 1) == there[0]
    assert search.propose(there, frozenset(), 1) in SPACE.neighbours(best)


def test_before_enough_is_known_every_proposal_comes_from_elsewhere() -> None:
    search = AroundTheBest(GridProposer(), SPACE, False, Random(1), startup=3)
    search.tell(told(ngram(3, 4, 8), 2.0))
    assert [search.propose(ALL[5:], frozenset(), 1) for _ in range(3)] == [5, 5, 5]


def test_less_is_better_where_it_is() -> None:
    slow, quick = ngram(3, 4, 1), draft("large", 1, 8)
    search = proposer(told(slow, 2.0), told(quick, 1.0), lower=True)
    assert search.propose(left(slow, quick), frozenset(), 1) in SPACE.neighbours(quick)


def test_a_cell_that_breaks_a_bound_or_failed_is_not_the_best() -> None:
    breaks, keeps, failed = ngram(3, 4, 1), draft("large", 1, 8), ngram(5, 8, 8)
    search = proposer(told(breaks, 9.0, bound=0.1), told(keeps, 1.0), told(failed, None))
    assert search.propose(left(breaks, keeps, failed), frozenset(), 1) in SPACE.neighbours(keeps)


def test_warm_engines_first_where_starts_cost_anything() -> None:
    best, warm = ngram(3, 4, 1), ngram(3, 4, 8)
    for seed in range(10):
        search = proposer(told(best, 2.0), seed=seed)
        assert search.propose(left(best), frozenset({warm}), 3) == warm
    free = {
        proposer(told(best, 2.0), seed=seed).propose(left(best), frozenset({warm}), 1)
        for seed in range(20)
    }
    assert len(free) > 1


def test_when_its_neighbours_are_measured_those_of_the_second_best_are_next() -> None:
    best, second = ngram(3, 2, 1), draft("large", 4, 8)
    search = proposer(told(best, 2.0), told(second, 1.0))
    there = left(best, second, *SPACE.neighbours(best))
    assert search.propose(there, frozenset(), 1) in SPACE.neighbours(second)
    only = [i for i in there if i not in SPACE.neighbours(second)]
    assert search.propose(only, frozenset(), 1) == only[0]
    assert search.propose(only, frozenset(), 1) == only[0]  # its turn, but nothing is near
