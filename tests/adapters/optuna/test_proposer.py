"""Optuna over the cells of a plan: the tree, what is proposed, what is stopped."""

from __future__ import annotations

import math

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.adapters.optuna import OptunaHalting, OptunaProposer
from orchestrator.adapters.optuna.tree import CellTree
from orchestrator.plan.axes import Space, matches, point_of
from orchestrator.search.proposer import Told
from tests.search.cells import comparisons

CELLS = comparisons()
SPACE = Space.of(CELLS)
ALL = list(range(len(CELLS)))


def told(index: int, value: float | None, **changes: object) -> Told:
    values = None if value is None else (value,)
    end = "failed" if value is None else "finished"
    return Told(**{  # type: ignore[arg-type]
        "index": index, "end": end, "values": values, "constraints": {}, "pairs": 6, **changes
    })  # fmt: skip


def truth(index: int) -> float:
    """Best: ngram, window 5, length 8, alone."""
    point = SPACE.points[index]
    value = math.log2(float(point["speculation_length"])) - float(point["batch_size"]) / 8
    return value + (1.0 if point.get("prompt_lookup_max") == 5.0 else 0.0)


def test_every_cell_has_a_path_of_its_own_that_leads_back_to_it() -> None:
    tree = CellTree(SPACE)
    paths = [tree.params(index)[0] for index in ALL]
    assert len({tuple(sorted(path.items())) for path in paths}) == len(CELLS)
    for index, path in enumerate(paths):
        assert tree.walk(optuna.trial.FixedTrial(path)) == index  # type: ignore[arg-type]


def test_a_draft_is_asked_for_only_where_there_are_drafts() -> None:
    tree = CellTree(SPACE)
    for index, cell in enumerate(CELLS):
        names = {name.split("[")[0] for name in tree.params(index)[0]}
        assert ("draft_model.draft" in names) == (cell.cell.method == "draft_model")
        assert ("ngram.prompt_lookup_max" in names) == (cell.cell.method == "ngram")


def test_a_partial_point_matches_every_cell_that_has_its_values() -> None:
    found = [c for c in CELLS if matches(point_of(c), {"method": "ngram", "prompt_lookup_max": 5})]
    assert len(found) == 3 * 2
    assert not any(matches(point_of(c), {"draft": "small", "method": "ngram"}) for c in CELLS)


def test_distance_is_zero_to_itself_symmetric_and_grows_along_an_axis() -> None:
    by = {(p["method"], p.get("draft"), p.get("prompt_lookup_max"), p["speculation_length"],
           p["batch_size"]): i for i, p in enumerate(SPACE.points)}  # fmt: skip
    a, b = by["ngram", None, 3.0, 2.0, 1.0], by["ngram", None, 3.0, 4.0, 1.0]
    c, d = by["ngram", None, 3.0, 8.0, 1.0], by["draft_model", "small", None, 2.0, 1.0]
    assert SPACE.distance(a, a) == 0
    assert 0 < SPACE.distance(a, b) < SPACE.distance(a, c) < SPACE.distance(a, d)
    assert SPACE.distance(a, d) == SPACE.distance(d, a)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), turn=st.integers(1, 8))
def test_only_what_is_left_is_proposed_until_nothing_is(seed: int, turn: int) -> None:
    proposer = OptunaProposer(SPACE, [False], seed=seed)
    left = list(ALL)
    while left:
        chosen = proposer.propose(left, frozenset(left[:3]), turn)
        left.remove(chosen)
        proposer.tell(told(chosen, truth(chosen) if chosen % 5 else None))


def test_the_same_seed_and_the_same_results_give_the_same_search() -> None:
    def run() -> list[int]:
        proposer = OptunaProposer(SPACE, [False], seed=7)
        left, order = list(ALL), []
        for _ in range(18):
            order.append(proposer.propose(left, frozenset(), 1))
            left.remove(order[-1])
            proposer.tell(told(order[-1], truth(order[-1])))
        return order

    assert run() == run()


def test_what_the_store_knows_draws_the_search_to_where_it_is_good() -> None:
    """20 cells known: among the first two proposals there is one of the best two left."""
    best = sorted(ALL, key=truth, reverse=True)
    hits = 0
    for seed in range(20):
        proposer = OptunaProposer(SPACE, [False], seed=seed)
        left = [best[0], best[1], best[-1], best[-2]]
        for index in ALL:
            if index not in left:
                proposer.tell(told(index, truth(index)))
        first = proposer.propose(sorted(left), frozenset(), 1)
        hits += first in best[:2]
    assert hits >= 15  # 10 if it did not learn


def test_where_starts_are_dear_a_warm_engine_is_kept_longer() -> None:
    def kept(turn: int) -> int:
        stays = 0
        for seed in range(40):
            proposer = OptunaProposer(SPACE, [False], seed=seed)
            warm = frozenset({0, 1, 2, 3})
            stays += proposer.propose(ALL, warm, turn) in warm
        return stays

    assert kept(8) > kept(1)


def test_cells_that_break_a_constraint_repel() -> None:
    """Left are the best cell alone and with 8 in flight; alone is better, unless it is too slow."""
    best = max(ALL, key=truth)
    twin = next(i for i in ALL if i != best and CELLS[i].pair == CELLS[best].pair)

    def alone(constraint: float) -> int:
        chosen = 0
        for seed in range(20):
            proposer = OptunaProposer(SPACE, [False], seed=seed)
            for index in ALL:
                if index not in (best, twin):
                    by_itself = SPACE.points[index]["batch_size"] == 1.0
                    bounds = {"tpot_p95_s": constraint if by_itself else -1.0}
                    proposer.tell(told(index, truth(index), constraints=bounds))
            chosen += proposer.propose(sorted((best, twin)), frozenset(), 1) == best
        return chosen

    assert alone(-1.0) >= 15
    assert alone(1.0) <= 5


def test_several_objectives_are_told_and_a_stopped_cell_is_no_obstacle() -> None:
    proposer = OptunaProposer(SPACE, [False, True], seed=1)
    left = list(ALL)
    for step in range(14):
        chosen = proposer.propose(left, frozenset(), 1)
        left.remove(chosen)
        end = "stopped" if step == 3 else "finished"
        values = (truth(chosen), float(step))
        proposer.tell(Told(chosen, end, values, {}, 3))
    assert len(left) == len(ALL) - 14


@pytest.mark.parametrize("kind", ["asha", "median"])
def test_the_worst_are_stopped_and_the_best_is_not(kind: str) -> None:
    halting = OptunaHalting(kind, least=2)  # type: ignore[arg-type]
    order = [3.0, 1.0, 2.0, 4.0, 2.5, 0.5, 0.1, 5.0, 0.2, 6.0]
    said = {}
    for index, value in enumerate(order):
        for pairs in range(1, 7):
            reason = halting.behind(index, pairs, value)
            assert pairs >= 2 or reason is None
            if reason is not None:
                said[value] = reason
                break
        halting.ended(index)
    assert {0.1, 0.2} <= said.keys()
    assert not {3.0, 4.0, 5.0, 6.0} & said.keys()
    assert said[0.2] == f"{kind}: behind the others after 2 valid pairs"


def test_an_invalid_pair_shows_nothing_new() -> None:
    halting = OptunaHalting("asha", least=2)
    for index in range(4):
        halting.behind(index, 2, 5.0 - index)
        halting.ended(index)
    assert halting.behind(9, 1, 0.1) is None
    assert halting.behind(9, 2, 0.1) is not None
    assert halting.behind(9, 2, 0.1) is None
