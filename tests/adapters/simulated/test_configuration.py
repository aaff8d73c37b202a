from __future__ import annotations

import pytest

from orchestrator.adapters.simulated.configuration import configure
from orchestrator.errors import SpecError
from orchestrator.plan.deployment import Deployment
from tests.adapters.simulated.build import configuration, deployment


def test_a_profile_by_name_and_a_parameter_over_it() -> None:
    made = configuration(3, profile="llama-8b-h100", acceptance=0.6, method="eagle")
    assert made.model.name == "llama-8b-h100"
    assert made.model.acceptance == (0.6,)
    assert made.model.draft_fixed_s == pytest.approx(2.135e-3, rel=1e-3)
    assert (made.method, made.speculation_length, made.served_name) == ("eagle", 3, "tiny")


def test_limits_are_the_engine_arguments_as_vllm_spells_them() -> None:
    made = configuration(engine={"max_num_seqs": 4, "max_model_len": 512, "dtype": "bfloat16"})
    assert made.limits.max_num_seqs == 4
    assert made.limits.max_model_len == 512
    assert made.limits.max_num_batched_tokens == 8192


def test_overrides_of_one_arm_leave_the_other_alone() -> None:
    how = {
        "faults": {"stall_at_s": 1.0, "stall_s": 2.0},
        "speculative": {"jitter_sigma": 0.1, "faults": {"crash_at_s": 30}},
    }
    baseline, speculative = configuration(0, **how), configuration(2, **how)
    assert (baseline.model.jitter_sigma, speculative.model.jitter_sigma) == (0.0, 0.1)
    assert (baseline.faults.crash_at_s, speculative.faults.crash_at_s) == (None, 30.0)
    assert speculative.faults.stall_s == 2.0, "the common faults still count"


def test_every_fault_at_once_with_the_nearest_name() -> None:
    with pytest.raises(SpecError) as caught:
        configuration(
            acceptence=0.7,
            acceptance=1.5,
            profile="lama-8b-h100",
            faults={"crash_at": 3, "stall_s": "long"},
            engine={"max_num_seqs": 0},
        )
    text = str(caught.value)
    assert len(caught.value.faults) == 6
    assert "engine.simulated.acceptence: unknown key; did you mean 'acceptance'?" in text
    assert "engine.simulated.acceptance: must be <= 1, got 1.5" in text
    assert "did you mean 'llama-8b-h100'?" in text
    assert "engine.simulated.faults.crash_at: unknown key; did you mean 'crash_at_s'?" in text
    assert "engine.simulated.faults.stall_s: must be a number, got 'long'" in text
    assert "engine.max_num_seqs: must be a whole number >= 1, got 0" in text


def test_a_typo_in_the_other_arm_is_found_before_its_engine_starts() -> None:
    with pytest.raises(SpecError, match=r"speculative\.jiter_sigma: unknown key"):
        configuration(0, speculative={"jiter_sigma": 0.1})


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        (3, "must be a mapping"),
        ({"acceptance": []}, "at least one position"),
        ({"acceptance_by_category": 0.5}, "from category to value"),
        ({"drafting": "never"}, "must be one of per_step, per_token, of_verify"),
        ({"faults": {"garbage_output": 1}}, "must be true or false"),
        ({"faults": 1}, "must be a mapping"),
        ({"baseline": 1}, "must be a mapping"),
        ({"kv_capacity_tokens": 10.5}, "must be a whole number"),
        ({"jitter_sigma": -0.1}, "must be >= 0"),
        ({"target_fixed_s": float("inf")}, "must be finite"),
    ],
)
def test_a_bad_value_says_its_rule(raw: object, rule: str) -> None:
    with pytest.raises(SpecError, match=rule):
        configure(Deployment("tiny", {"simulated": raw}))


def test_a_schedule_carries_gaps_forward_and_is_capped_by_the_length() -> None:
    made = configuration(3, schedule=[[1, 2, 5], [5, 6, 1]], engine={"max_num_seqs": 8})
    assert made.lengths_by_batch()[1:] == (3, 3, 3, 3, 1, 1, 1, 1)


@pytest.mark.parametrize(
    "schedule", [[[2, 4, 1]], [[1, 4, 1], [4, 8, 0]], [[1, 4]], [[1, 4, -1]], [], [["1", 2, 3]]]
)
def test_a_schedule_that_vllm_would_refuse_is_refused(schedule: list[list[int]]) -> None:
    with pytest.raises(SpecError, match="num_speculative_tokens_per_batch_size"):
        configure(deployment(3, schedule=schedule))


def test_the_draft_takes_its_share_of_the_cache_in_the_speculative_arm_only() -> None:
    how = {"kv_capacity_tokens": 1000, "draft_kv_fraction": 0.1}
    assert configuration(0, **how).kv_capacity_tokens == 1000
    assert configuration(3, **how).kv_capacity_tokens == 900
