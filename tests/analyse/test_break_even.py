from __future__ import annotations

import pytest

from orchestrator.analyse.break_even import break_even_step
from tests.measure.test_stages import block, sums


def test_al_star_is_weighed_by_the_steps_of_the_speculative_arm() -> None:
    baseline = block((), (sums(1, 64, steps=40, step_s=2.0), sums(4, 64, steps=10, step_s=1.0)))
    speculative = block(
        (),
        (
            sums(1, 64, k=4, steps=30, step_s=3.0),  # twice the baseline's 0.05 s
            sums(4, 64, k=4, steps=10, step_s=4.0),  # four times its 0.1 s
        ),
        accepted=35.0,
    )
    found = break_even_step([baseline], [speculative])
    assert found.break_even_acceptance_length == pytest.approx(0.75 * 2 + 0.25 * 4)
    assert found.tokens_per_step == pytest.approx(1 + 35 / (30 + 40))
    assert found.predicted_speedup == pytest.approx(1.5 / 2.5)
    assert found.why is None


def test_steps_without_a_counterpart_are_left_out_unless_they_are_most() -> None:
    baseline = block((), (sums(1, 64, steps=10, step_s=1.0),))
    few = block((), (sums(1, 64, steps=8, step_s=1.6), sums(1, 128, steps=2, step_s=9.0)))
    assert break_even_step([baseline], [few]).break_even_acceptance_length == pytest.approx(2.0)
    most = block((), (sums(1, 64, steps=1, step_s=0.2), sums(1, 128, steps=9, step_s=1.8)))
    found = break_even_step([baseline], [most])
    assert found.break_even_acceptance_length is None
    assert found.why is not None
    assert "1 of 10 speculative decode steps" in found.why
    assert found.speculative is not None, "the split is known all the same"


def test_an_engine_that_says_nothing_is_named() -> None:
    found = break_even_step([block(None, None)], [block((), (sums(),))])
    assert found.speculative is None
    assert found.why == "the baseline engine does not say what its steps spend their time on"


def test_a_control_gets_one_token_a_step() -> None:
    both = block((), (sums(steps=10, step_s=1.0),))
    found = break_even_step([both], [both], speculates=False)
    assert found.predicted_speedup == pytest.approx(1.0)
    assert found.speculative is not None
    assert found.speculative.draft_s is None
