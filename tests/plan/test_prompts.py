"""Each prompt once per pair of engines; both arms the same block."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan.prompts import (
    block_plans,
    planned_offsets,
    prompts_needed,
    requests_in_block,
    requests_in_warmup,
    shuffled,
)
from orchestrator.plan.trial import Trial
from tests.plan.planned import CHAT, NGRAM, experiment, plan, prompts


def sent(trial: Trial, start: int, count: int, order_seed: int = 0) -> list[str]:
    """Ids of the prompts that one arm gets, in order."""
    blocks = block_plans(
        trial, prompts(count, 3), start=start, order_seed=order_seed, offsets=planned_offsets()
    )
    plans = [blocks.warmup(), *(blocks.pair(i) for i in range(trial.protocol.pairs_max))]
    return [request.prompt.id for block in plans for request in block.requests]


@settings(max_examples=25, deadline=None)
@given(
    batch_size=st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True),
    temperatures=st.integers(1, 3),
    pairs_max=st.integers(2, 6),
    requests=st.integers(1, 3),
    warmup=st.integers(0, 2),
    seed=st.integers(0, 5),
)
def test_no_prompt_is_met_twice_by_a_pair_of_engines_when_the_set_just_suffices(
    batch_size: list[int],
    temperatures: int,
    pairs_max: int,
    requests: int,
    warmup: int,
    seed: int,
) -> None:
    spec = experiment(
        batch_size=batch_size,
        temperature=[i / 10 for i in range(temperatures)],
        measure={
            "pairs": {"min": 2, "max": pairs_max},
            "requests_per_block": requests,
            "warmup_requests": warmup,
        },
        seed=seed,
    )
    in_flight = sum(batch_size) * temperatures
    needed = in_flight * (pairs_max * requests + warmup)
    planned = plan(spec, count=needed)
    assert not planned.errors
    assert plan(spec, count=needed - 1).errors
    by_pair: dict[str, list[str]] = {}
    for trial, start in zip(planned.trials, planned.prompt_starts, strict=True):
        by_pair.setdefault(trial.pair.key, []).extend(sent(trial, start, needed, planned.seed))
    assert len(by_pair) == 3
    for ids in by_pair.values():
        assert len(ids) == len(set(ids))
    assert {len(ids) for key, ids in by_pair.items() if key != planned.trials[0].pair.key} == {
        needed
    }


def test_different_speculative_engines_get_the_same_prompts_at_the_same_point() -> None:
    """So K=2 and K=4 can be compared with each other too."""
    planned = plan(experiment(batch_size=[1, 4]))
    by_length: dict[int, list[str]] = {2: [], 4: []}
    for trial, start in zip(planned.trials, planned.prompt_starts, strict=True):
        if trial.kind == "comparison":
            by_length[trial.cell.speculation_length] += sent(trial, start, 200)
    assert by_length[2] == by_length[4]


def test_a_block_is_a_value_and_its_requests_carry_seeds_of_their_own() -> None:
    """Both arms get the same object; making it again gives an equal one."""
    trial = plan(experiment(batch_size=4, temperature=0.8)).trials[1]
    blocks = block_plans(trial, prompts(200), start=0, order_seed=0)
    assert blocks.pair(3) == blocks.pair(3)
    seeds = [r.seed for i in range(24) for r in blocks.pair(i).requests]
    assert len(set(seeds)) == 24 * 4
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)
    ids = [r.request_id for i in range(24) for r in blocks.pair(i).requests]
    assert len(set(ids)) == len(ids)


def test_without_seeding_no_seed_is_sent() -> None:
    trial = plan(experiment(sampling={"seeded": False})).trials[1]
    assert block_plans(trial, prompts(50), start=0, order_seed=0).pair(0).requests[0].seed is None


def test_sizes_of_blocks() -> None:
    """Closed, 4 in flight: 2 x 4 a block, 1 x 4 to warm up. Open: 40 a block, min(8, 40) before."""
    closed = plan(experiment(batch_size=4, measure={"requests_per_block": 2})).trials[1]
    assert (requests_in_block(closed), requests_in_warmup(closed)) == (8, 4)
    assert prompts_needed(closed) == 4 + 24 * 8
    open_load = plan(
        experiment(
            batch_size=8, load={"mode": "open", "rate_rps": 2}, measure={"requests_per_block": 40}
        )
    ).trials[1]
    assert (requests_in_block(open_load), requests_in_warmup(open_load)) == (40, 8)


def test_an_open_block_is_sent_by_the_clock_and_its_warm_up_is_not() -> None:
    spec = experiment(
        batch_size=8,
        load={"mode": "open", "rate_rps": 2.0, "arrivals": "constant"},
        measure={"requests_per_block": 4},
    )
    trial = plan(spec).trials[1]
    blocks = block_plans(trial, prompts(200), start=0, order_seed=0, offsets=planned_offsets())
    assert [r.offset_s for r in blocks.pair(0).requests] == [0.0, 0.5, 1.0, 1.5]
    assert blocks.warmup().load.mode == "closed"
    assert {r.offset_s for r in blocks.warmup().requests} == {None}
    bare = block_plans(trial, prompts(200), start=0, order_seed=0)
    with pytest.raises(ValueError, match="says when requests are sent"):
        bare.pair(0)


def test_poisson_offsets_differ_between_pairs_and_are_the_same_each_time() -> None:
    trial = plan(experiment(batch_size=8, load={"mode": "open", "rate_rps": 2.0})).trials[1]
    blocks = block_plans(trial, prompts(2000), start=0, order_seed=0, offsets=planned_offsets())
    offsets = [[r.offset_s for r in blocks.pair(i).requests] for i in (0, 1, 0)]
    assert offsets[0] != offsets[1]
    assert offsets[0] == offsets[2]


def test_a_trace_is_played_at_its_scale() -> None:
    load = {"mode": "open", "arrivals": "trace", "trace": "/t.csv", "time_scale": 0.5}
    trial = plan(experiment(batch_size=8, load=load, measure={"requests_per_block": 3})).trials[1]
    offsets = planned_offsets([10.0, 11.0, 14.0, 20.0])
    blocks = block_plans(trial, prompts(100), start=0, order_seed=0, offsets=offsets)
    assert [r.offset_s for r in blocks.pair(0).requests] == [0.0, 0.5, 2.0]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_every_stretch_holds_each_category_in_proportion(
    sizes: list[int], seed: int, data: st.DataObject
) -> None:
    """|held - w n / N| <= 1 + C n / N."""
    from orchestrator.plan.block import Prompt

    members = [Prompt(f"{c}-{i}", f"c{c}", ("x",)) for c, n in enumerate(sizes) for i in range(n)]
    order = shuffled(members, seed)
    assert sorted(p.id for p in order) == sorted(p.id for p in members)
    total = len(order)
    first = data.draw(st.integers(0, total - 1))
    width = data.draw(st.integers(1, total - first))
    held = Counter(p.category for p in order[first : first + width])
    for c, n in enumerate(sizes):
        expected = width * n / total
        assert abs(held[f"c{c}"] - expected) <= 1 + len(sizes) * n / total + 1e-9


def test_the_order_depends_on_ids_and_seed_alone() -> None:
    some = prompts(60, 4)
    assert shuffled(some, 1) == shuffled(tuple(reversed(some)), 1)
    assert shuffled(some, 1) != shuffled(some, 2)
    assert shuffled(some, 1) != some


def test_a_trial_needs_prompts_and_a_pair_has_an_index() -> None:
    trial = plan(experiment(speculation=[NGRAM], workloads=[CHAT])).trials[1]
    with pytest.raises(ValueError, match="at least one prompt"):
        block_plans(trial, (), start=0, order_seed=0)
    with pytest.raises(IndexError, match="0 <= index < 24 must hold, got 24"):
        block_plans(trial, prompts(5), start=0, order_seed=0).pair(24)
