"""From an arm's deployment to what the engine is given."""

from __future__ import annotations

import pytest

from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.serving.engine_arguments import (
    BadEngineArgument,
    check_engine_arguments,
    placement,
)
from orchestrator.serving.served_engine import ServedEngine, from_deployment, read_served_engine

KNOWN = ["model", "dtype", "max_model_len", "max_num_seqs", "trust_remote_code"]


def served(**engine: object) -> ServedEngine:
    return ServedEngine(target="m", engine=engine)


def test_speculation_in_the_words_of_vllm() -> None:
    deployment = Deployment(
        "smol",
        {"dtype": "bfloat16"},
        Speculation("eagle", 3, draft="head", options={"disable_padded_drafter_batch": True}),
    )

    one = from_deployment(
        deployment, target_path="/m/smol", draft_path="/m/head", model_name="smol"
    )

    assert one.speculative_config() == {
        "method": "eagle",
        "num_speculative_tokens": 3,
        "model": "/m/head",
        "disable_padded_drafter_batch": True,
    }


def test_both_arms_answer_to_one_model_name() -> None:
    arms = [Deployment("smol", {}), Deployment("smol", {}, Speculation("ngram", 4))]

    names = {
        from_deployment(arm, target_path="/m/x", draft_path=None, model_name="smol").model_name
        for arm in arms
    }

    assert names == {"smol"}


def test_the_baseline_has_no_speculative_config() -> None:
    assert served().speculative_config() is None


def test_the_arguments_survive_a_yaml_file() -> None:
    one = from_deployment(
        Deployment("smol", {"max_model_len": 8}, Speculation("ngram", 2, options={"a": 1})),
        target_path="/m/smol",
        draft_path=None,
        model_name="smol",
    )

    assert read_served_engine(one.model_dump(mode="json")) == one


def test_a_draft_without_a_path_is_refused() -> None:
    deployment = Deployment("smol", {}, Speculation("eagle", 3, draft="head"))

    with pytest.raises(ValueError, match="'head' was not resolved"):
        from_deployment(deployment, target_path="/m", draft_path=None, model_name="m")


def test_options_cannot_say_again_what_has_its_own_key() -> None:
    deployment = Deployment("smol", {}, Speculation("ngram", 3, options={"method": "suffix"}))

    with pytest.raises(ValueError, match=r"must not repeat .* got \['method'\]"):
        from_deployment(deployment, target_path="/m", draft_path=None, model_name="m")


def test_every_fault_in_the_arguments_is_named() -> None:
    with pytest.raises(ValueError, match="enigne") as raised:
        read_served_engine(
            {"target": "m", "enigne": {}, "speculation": {"speculation_length": 0, "method": "x"}}
        )

    lines = str(raised.value).splitlines()
    assert "args.enigne: unknown key; did you mean 'engine'?" in lines
    assert any(line.startswith("args.speculation.speculation_length:") for line in lines)


def test_an_unknown_engine_argument_names_the_nearest() -> None:
    with pytest.raises(BadEngineArgument, match="did you mean 'max_model_len'"):
        check_engine_arguments({"max_modal_len": 5}, KNOWN, {})


def test_arguments_with_a_key_of_their_own_are_sent_there() -> None:
    with pytest.raises(BadEngineArgument, match="give it as 'target'"):
        check_engine_arguments({"model": "m"}, KNOWN, {})


def test_arguments_of_the_front_end_are_let_through() -> None:
    check_engine_arguments({"chat_template": "x", "dtype": "auto"}, KNOWN, {})


def test_remote_code_needs_the_word_of_the_one_who_runs_it() -> None:
    with pytest.raises(BadEngineArgument, match="ORCHESTRATOR_ALLOW_REMOTE_CODE=1"):
        check_engine_arguments({"trust_remote_code": True}, KNOWN, {})
    check_engine_arguments(
        {"trust_remote_code": True}, KNOWN, {"ORCHESTRATOR_ALLOW_REMOTE_CODE": "1"}
    )
    check_engine_arguments({"trust_remote_code": False}, KNOWN, {})


def test_placement_always_states_the_gpus() -> None:
    assert placement(served(), accelerators=False).actor_options["num_gpus"] == 0
    assert placement(served(), accelerators=True).actor_options["num_gpus"] == 1


def test_an_engine_of_several_devices_takes_them_in_one_actor() -> None:
    where = placement(served(tensor_parallel_size=2, pipeline_parallel_size=2), accelerators=True)

    assert (where.actor_options["num_gpus"], where.bundles, where.gpus) == (4, None, 4)


def test_the_ray_executor_takes_a_placement_group() -> None:
    where = placement(
        served(tensor_parallel_size=2, distributed_executor_backend="ray"), accelerators=True
    )

    assert where.actor_options["num_gpus"] == 0
    assert where.bundles == ({"CPU": 1.0}, {"GPU": 1.0, "CPU": 1.0}, {"GPU": 1.0, "CPU": 1.0})
    assert where.gpus == 2


def test_the_file_may_say_otherwise() -> None:
    one = ServedEngine(target="m", ray_actor_options={"num_gpus": 0.5, "num_cpus": 3})

    assert dict(placement(one, accelerators=True).actor_options) == {"num_gpus": 0.5, "num_cpus": 3}
