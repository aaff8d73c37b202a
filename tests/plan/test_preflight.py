"""Each rule, with its numbers worked out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.plan.facts import ClusterFacts, ModelFacts, PromptSetFacts
from tests.plan.planned import CHAT, NGRAM, experiment, left_out, notice, plan, rules

TARGET = ModelFacts(vocab_size=49152, max_position_embeddings=8192, vocabulary_hash="aa")


def test_a_draft_of_another_vocabulary_is_left_out_and_the_rest_runs() -> None:
    spec = experiment(
        speculation=[
            NGRAM,
            {"method": "draft_model", "draft": ["same", "other"], "speculation_length": 3},
        ]
    )
    planned = plan(
        spec, models={"tiny": TARGET, "same": TARGET, "other": replace(TARGET, vocab_size=32000)}
    )
    (skipped,) = planned.skipped
    assert skipped.rule == "vocabulary_differs"
    assert skipped.reason.startswith("the draft other has 32000 tokens and the target 49152")
    assert len(planned.trials) == 1 + 2 + 1


def test_equal_sizes_with_other_tokens_are_left_out_too() -> None:
    spec = experiment(speculation=[{"method": "eagle", "draft": "d", "speculation_length": 2}])
    planned = plan(spec, models={"tiny": TARGET, "d": replace(TARGET, vocabulary_hash="bb")})
    assert left_out(planned) == {("eagle K=2", "vocabulary_differs")}


def test_a_vocabulary_may_differ_where_vllm_is_told_to_bridge_it() -> None:
    entry = {
        "method": "draft_model",
        "draft": "d",
        "speculation_length": 2,
        "options": {"use_heterogeneous_vocab": True},
    }
    spec = experiment(speculation=[entry])
    planned = plan(spec, models={"tiny": TARGET, "d": ModelFacts(vocab_size=32000)})
    assert not planned.skipped


def test_what_is_not_known_is_said_to_be_unchecked() -> None:
    spec = experiment(speculation=[{"method": "eagle", "draft": "d", "speculation_length": 2}])
    known = {"chat": PromptSetFacts(1000, "h")}
    planned = plan(spec, prompt_sets=known, cluster=ClusterFacts())
    texts = [n.text for n in planned.notices if n.rule == "unchecked"]
    assert len(texts) == 3
    assert any("vocabulary of d" in text for text in texts)
    assert not planned.skipped


def test_prompt_and_answer_must_fit_the_context() -> None:
    """200 + 32 = 232 tokens into 231 do not go; into 232 they do."""
    tight = plan(experiment(engine={"max_model_len": 231}), longest=200)
    assert left_out(tight) == {("ngram K=2", "context_exceeded"), ("ngram K=4", "context_exceeded")}
    assert tight.skipped[0].reason == (
        "prompt + output <= max_model_len must hold, got up to 232 (longest prompt 200, "
        "output_tokens 32) > 231; input_tokens.max: 199 would fit"
    )
    assert not plan(experiment(engine={"max_model_len": 232}), longest=200).skipped


def test_without_max_model_len_the_models_own_context_counts() -> None:
    planned = plan(experiment(), longest=8161, models={"tiny": TARGET})
    assert {item.rule for item in planned.skipped} == {"context_exceeded"}
    assert "max_position_embeddings" in planned.skipped[0].reason
    assert not plan(experiment(), longest=8160, models={"tiny": TARGET}).skipped


def test_own_history_needs_room_for_every_turns_answer() -> None:
    """Three turns: 100 + 3 x 32 = 196."""
    spec = experiment(workloads=[CHAT | {"history": "own"}], engine={"max_model_len": 195})
    facts = {"chat": PromptSetFacts(1000, "h", 10, 50.0, 150, ((1, 150), (3, 100)))}
    assert "got up to 196" in plan(spec, prompt_sets=facts).skipped[0].reason


def test_a_draft_longer_than_the_answer_says_nothing() -> None:
    """K + 1 <= output_tokens: 7 + 1 = 8 is the last that fits 8 tokens."""
    spec = experiment(
        speculation=[NGRAM | {"speculation_length": [7, 8]}, {"method": "suffix"}],
        workloads=[CHAT | {"output_tokens": 8}],
    )
    assert left_out(plan(spec)) == {("ngram K=8", "speculation_too_long")}


@pytest.mark.parametrize(
    ("method", "facts", "fits"),
    [
        ("medusa", ModelFacts(heads=4), [1, 2, 3, 4]),
        ("eagle", ModelFacts(step_tokens=3), [1, 2, 3, 6]),
        ("eagle3", ModelFacts(), [1, 2, 3, 4, 5, 6]),
    ],
)
def test_heads_of_a_fixed_length(method: str, facts: ModelFacts, fits: list[int]) -> None:
    entry = {"method": method, "draft": "d", "speculation_length": [1, 2, 3, 4, 5, 6]}
    planned = plan(experiment(speculation=[entry]), models={"d": facts})
    assert [t.cell.speculation_length for t in planned.trials[1:]] == fits


def test_mtp_layers_of_the_target_itself() -> None:
    entry = {"method": "mtp", "speculation_length": [1, 2, 3]}
    planned = plan(experiment(speculation=[entry]), models={"tiny": ModelFacts(step_tokens=2)})
    assert left_out(planned) == {("mtp K=3", "speculation_too_long")}


def test_combinations_of_a_window_that_is_empty_are_left_out() -> None:
    entry = NGRAM | {"speculation_length": 2, "prompt_lookup_min": [2, 4], "prompt_lookup_max": 3}
    planned = plan(experiment(speculation=[entry]))
    assert [item.reason for item in planned.skipped] == [
        "prompt_lookup_min <= prompt_lookup_max must hold, got min=4, max=3"
    ]


def test_a_window_longer_than_any_text_can_match_nothing() -> None:
    """10 + 32 tokens hold no 42-gram twice, but may hold a 41-gram twice."""
    entry = NGRAM | {
        "speculation_length": 2,
        "prompt_lookup_min": [41, 42],
        "prompt_lookup_max": 50,
    }
    planned = plan(experiment(speculation=[entry]), longest=10)
    assert [item.rule for item in planned.skipped] == ["lookup_window"]
    assert "42 tokens" in planned.skipped[0].reason


@pytest.mark.parametrize(
    ("placement", "engine", "gpus", "runs"),
    [
        ({"gpus_per_replica": 1}, {}, 1, False),
        ({"gpus_per_replica": 1}, {}, 2, True),
        ({"gpus_per_replica": 1, "strategy": "shared"}, {}, 1, True),
        ({}, {"tensor_parallel_size": 4}, 4, False),
        ({}, {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, 8, True),
        ({"gpus_per_replica": 1}, {"tensor_parallel_size": 2}, 8, False),
        ({"strategy": "in_turn"}, {"tensor_parallel_size": 4}, 4, True),
    ],
)
def test_devices(
    placement: dict[str, object], engine: dict[str, int], gpus: int, runs: bool
) -> None:
    spec = experiment(placement=placement, engine=engine)
    planned = plan(spec, cluster=ClusterFacts(gpus=gpus))
    assert bool(planned.trials) == runs
    if not runs:
        assert {item.rule for item in planned.skipped} == {"too_many_devices"}
        assert notice(planned, "nothing_to_measure").severity == "error"
        assert planned.engine_starts == 0


def test_processors_count_as_well() -> None:
    spec = experiment(placement={"cpus_per_replica": 2, "gpus_per_replica": 0})
    assert not plan(spec, cluster=ClusterFacts(gpus=0, cpus=3)).trials
    assert plan(spec, cluster=ClusterFacts(gpus=0, cpus=4)).trials


def test_a_batch_size_above_a_cap_that_the_file_sets_is_queueing() -> None:
    planned = plan(experiment(batch_size=[4, 16], engine={"max_num_seqs": 8}))
    assert notice(planned, "queueing").text.startswith(
        "16 in flight is above engine.max_num_seqs=8"
    )
    assert {d.engine["max_num_seqs"] for d in planned.deployments} == {8}
    assert planned.trials[0].cell.batch_size == 4


def test_a_set_that_is_too_small_is_an_error_with_the_sum() -> None:
    """Per pair: batch 1 and 4 at 2 temperatures, (24 pairs + 1 warm-up) x (1 + 4) x 2 = 250."""
    spec = experiment(batch_size=[1, 4], temperature=[0.0, 0.8])
    assert not plan(spec, count=250).errors
    (error,) = plan(spec, count=249).errors
    assert error.rule == "prompts_too_few"
    assert error.text == (
        "workload chat needs 250 prompts to use each once (4 trials on one pair of engines), "
        "and the set has 249"
    )
    assert (error.hint or "").startswith("measure.pairs.max: 23, ")


def test_the_hint_names_no_number_of_pairs_below_the_least() -> None:
    """(6 + 1) x 1 = 7 prompts are the least that pairs.min: 6 takes."""
    (error,) = plan(experiment(), count=6).errors
    assert "pairs.max" not in (error.hint or "")


def test_where_only_suites_run_no_prompt_of_the_workload_is_asked() -> None:
    assert not plan(experiment(suites=["functional"]), count=1).errors
    assert plan(experiment(suites=["performance", "functional"]), count=1).errors


def test_two_workloads_on_one_set_share_it() -> None:
    second = CHAT | {"name": "again", "output_tokens": 16}
    spec = experiment(workloads=[CHAT, second])
    assert not plan(spec, count=50).errors
    assert "chat and again" in plan(spec, count=49).errors[0].text


def test_reuse_that_is_allowed_is_recorded_as_a_warning() -> None:
    spec = experiment(workloads=[CHAT | {"allow_reuse": True}])
    planned = plan(spec, count=10)
    assert not planned.errors
    assert notice(planned, "prompts_reused").severity == "warning"
    assert "enable_prefix_caching" in (notice(planned, "prompts_reused").hint or "")
    off = plan(
        experiment(
            workloads=[CHAT | {"allow_reuse": True}], engine={"enable_prefix_caching": False}
        ),
        count=10,
    )
    assert notice(off, "prompts_reused").hint is None


def test_one_baseline_for_several_engines_meets_its_prompts_again() -> None:
    assert notice(plan(experiment()), "baseline_meets_prompts_again").severity == "warning"
    single = experiment(speculation=[NGRAM | {"speculation_length": 2}])
    assert "baseline_meets_prompts_again" not in rules(plan(single))
    off = experiment(engine={"enable_prefix_caching": False})
    assert "baseline_meets_prompts_again" not in rules(plan(off))


def test_on_a_cpu_seeded_prefill_is_kept_whole() -> None:
    """4 requests x (900 + 64 for the template) = 3856, in steps of 256: 4096."""
    spec = experiment(batch_size=[1, 4], temperature=[0.0, 0.8], placement={"gpus_per_replica": 0})
    planned = plan(spec, longest=900)
    assert notice(planned, "seeded_chunked_prefill").severity == "note"
    assert {d.engine["max_num_batched_tokens"] for d in planned.deployments} == {4096}


def test_the_limit_that_is_set_does_not_depend_on_whether_prompts_were_counted() -> None:
    """4 x max_model_len 2048 = 8192: `plan` without a tokenizer names the sweep's own trials."""
    spec = experiment(
        batch_size=4,
        temperature=0.8,
        placement={"gpus_per_replica": 0},
        engine={"max_model_len": 2048},
    )
    counted = plan(spec)
    uncounted = plan(spec, prompt_sets={"chat": PromptSetFacts(10_000, "hash of bundled:chat")})
    assert counted.deployments[0].engine["max_num_batched_tokens"] == 8192
    assert [t.id for t in counted.trials] == [t.id for t in uncounted.trials]


def test_where_nothing_is_known_the_danger_is_said() -> None:
    spec = experiment(temperature=0.8, placement={"gpus_per_replica": 0})
    planned = plan(spec, prompt_sets={"chat": PromptSetFacts(1000, "h")})
    assert notice(planned, "seeded_chunked_prefill").severity == "warning"
    assert "max_num_batched_tokens" not in planned.deployments[0].engine


@pytest.mark.parametrize(
    ("sections", "cluster"),
    [
        ({"temperature": 0.0}, ClusterFacts(gpus=0)),
        ({"temperature": 0.8}, ClusterFacts(gpus=2)),
        ({"temperature": 0.8, "sampling": {"seeded": False}}, ClusterFacts(gpus=0)),
        ({"temperature": 0.8, "engine": {"enable_chunked_prefill": False}}, ClusterFacts(gpus=0)),
        ({"temperature": 0.8, "engine": {"simulated": {}}}, ClusterFacts(gpus=0)),
    ],
    ids=str,
)
def test_where_it_cannot_happen_nothing_is_set(
    sections: dict[str, object], cluster: ClusterFacts
) -> None:
    planned = plan(experiment(**sections), cluster=cluster)  # type: ignore[arg-type]
    assert "max_num_batched_tokens" not in planned.deployments[0].engine


def test_a_limit_set_too_low_is_kept_and_warned_about() -> None:
    spec = experiment(
        batch_size=4,
        temperature=0.8,
        engine={"max_num_batched_tokens": 2048},
        placement={"gpus_per_replica": 0},
    )
    planned = plan(spec, longest=900)
    warning = notice(planned, "seeded_chunked_prefill")
    assert warning.severity == "warning"
    assert "4 prompts need 4096" in warning.text
    assert planned.deployments[0].engine["max_num_batched_tokens"] == 2048


def test_a_misspelt_engine_argument_is_passed_on_with_a_warning() -> None:
    planned = plan(experiment(engine={"max_modle_len": 2048, "some_new_option": 1}))
    warning = notice(planned, "engine_argument")
    assert warning.hint == "did you mean 'max_model_len'?"


def test_two_selections_from_one_source_that_overlap() -> None:
    def of(first: dict[str, int], second: dict[str, int]) -> set[str]:
        spec = experiment(
            workloads=[
                CHAT | {"input_tokens": first},
                CHAT | {"name": "long", "input_tokens": second},
            ]
        )
        facts = {"chat": PromptSetFacts(1000, "a"), "long": PromptSetFacts(1000, "b")}
        return rules(plan(spec, prompt_sets=facts))

    assert "overlapping_sets" in of({"max": 64}, {"min": 64})
    assert "overlapping_sets" not in of({"max": 63}, {"min": 64})


def test_random_tokens_are_labelled() -> None:
    spec = experiment(workloads=[CHAT | {"prompts": "random:count=64,tokens=128"}])
    assert "random_tokens" in rules(plan(spec))


@pytest.mark.parametrize(
    ("sampling", "temperature", "warned"),
    [
        ({"top_k": 20}, [0.8], True),
        ({"top_k": 20, "top_p": 0.9}, [0.8], False),
        ({"top_k": 20}, [0.0], False),
        ({}, [0.8], False),
    ],
)
def test_top_k_alone_ends_a_speculative_engine_on_a_cpu(
    sampling: dict[str, Any], temperature: list[float], warned: bool
) -> None:
    spec = experiment(
        sampling=sampling,
        sweep={
            "speculation": [{"method": "ngram", "speculation_length": [2]}],
            "temperature": temperature,
        },
    )
    assert ("cpu_top_k" in rules(plan(spec, cluster=ClusterFacts(gpus=0, cpus=8)))) is warned
    assert "cpu_top_k" not in rules(plan(spec, cluster=ClusterFacts(gpus=8)))
