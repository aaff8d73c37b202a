"""The cost of a step from a ladder of lengths, and from outside; held against what is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.analyse.break_even import break_even_step
from orchestrator.analyse.step_regression import observed_step_s, step_cost
from orchestrator.records import BlockRecord
from tests.analyse.timed_blocks import block_of


def test_a_ladder_gives_back_what_it_was_made_of() -> None:
    steps = {0: 0.020, 1: 0.026, 2: 0.030, 4: 0.038}
    found = step_cost(steps)
    assert found is not None
    assert found.base_s == 0.020
    assert found.fixed_s == pytest.approx(0.002)
    assert found.per_token_s == pytest.approx(0.004)
    assert found.residual == pytest.approx(0.0, abs=1e-9)
    assert found.break_even_acceptance_length(3) == pytest.approx(0.034 / 0.020)


@pytest.mark.parametrize("steps", [{}, {0: 0.02, 1: 0.03}, {1: 0.02, 2: 0.03}])
def test_a_ladder_needs_the_baseline_and_two_lengths(steps: dict[int, float]) -> None:
    assert step_cost(steps) is None


def test_both_ways_agree_on_blocks_whose_steps_are_known() -> None:
    """AL* from the engine's own sums and AL* from what a client saw of the same steps."""
    ladder = {0: 0.020}
    for length, step_s, accepted in ((1, 0.026, 0.5), (2, 0.030, 0.8), (4, 0.038, 1.0)):
        baseline = [block_of(0, 0.020, 0.0)]
        speculative = [block_of(length, step_s, accepted)]
        inside = break_even_step(baseline, speculative)
        outside = break_even_step(_silent(baseline), _silent(speculative))
        assert inside.break_even_acceptance_length == pytest.approx(step_s / 0.020, rel=0.02)
        assert outside.break_even_acceptance_length == pytest.approx(
            inside.break_even_acceptance_length, rel=0.02
        )
        assert outside.speculative is None and outside.why is not None
        observed = observed_step_s(speculative, speculates=True)
        assert observed is not None
        ladder[length] = observed
    found = step_cost(ladder)
    assert found is not None
    assert found.per_token_s == pytest.approx(0.004, rel=0.05)
    assert found.fixed_s == pytest.approx(0.002, rel=0.1)


def test_without_a_counter_of_accepted_tokens_nothing_is_said_of_a_speculative_step() -> None:
    block = block_of(2, 0.03, 0.8)
    after = replace(block.counters_after, accepted_tokens=None)  # type: ignore[type-var]
    assert observed_step_s([replace(block, counters_after=after)], speculates=True) is None
    assert observed_step_s([], speculates=False) is None


def _silent(blocks: list[BlockRecord]) -> list[BlockRecord]:
    """The same blocks of an engine that does not say what its steps are spent on."""

    def quiet(snapshot: Any) -> Any:
        return None if snapshot is None else replace(snapshot, stages=None)

    return [
        replace(
            block,
            counters_before=quiet(block.counters_before),
            counters_after=quiet(block.counters_after),
        )
        for block in blocks
    ]
