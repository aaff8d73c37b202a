"""Both servers before the first trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.adapters.attached.access import Access
from orchestrator.adapters.attached.deployer import AttachedDeployer
from orchestrator.adapters.attached.survey import Survey, questions, survey
from orchestrator.errors import DeploymentError
from orchestrator.plan.block import Timeouts
from orchestrator.plan.plan import Plan
from orchestrator.plan.trial import Trial
from tests.adapters.attached.fake_server import LLAMA_CPP, SGLANG, VLLM, FakeServer, serving
from tests.plan.planned import CHAT, experiment, plan

NGRAM = {"method": "ngram", "speculation_length": 4}
VLLM_MODELS = ({"id": "m", "owned_by": "vllm"},)
VLLM_BASELINE = VLLM | {"/metrics": "vllm:generation_tokens_total 5\n"}
VLLM_DRAFTING = VLLM | {
    "/metrics": "vllm:generation_tokens_total 5\nvllm:spec_decode_num_drafts_total 3\n"
    "vllm:spec_decode_num_accepted_tokens_total 4\n"
}


def planned(baseline: str, speculative: str, **sections: Any) -> Plan:
    return plan(
        experiment(
            target=None,
            speculation=[NGRAM],
            attach={"baseline": baseline, "speculative": speculative},
            **sections,
        )
    )


def look(baseline: FakeServer, speculative: FakeServer, **sections: Any) -> Survey:
    with serving(baseline), serving(speculative):
        return look_at(planned(baseline.url, speculative.url, **sections))


def look_at(asked: Plan) -> Survey:
    access = Access()
    return survey(
        AttachedDeployer(access),
        access,
        asked.trials[-1].pair,
        asked.trials,
        timeout_s=5.0,
        timeouts=Timeouts(5.0, 5.0, 5.0, 5.0),
    )


def test_two_equal_servers_leave_no_doubts() -> None:
    found = look(
        FakeServer(VLLM_MODELS, pages=VLLM_BASELINE), FakeServer(VLLM_MODELS, pages=VLLM_DRAFTING)
    )
    assert found.counting.usage == "continuous"
    assert not found.simulated
    baseline, speculative = found.notes
    assert baseline.startswith("baseline: vllm 0.32.0 with m at http://127.0.0.1:")
    assert "acceptance," not in baseline
    assert "acceptance per position" in speculative
    assert "accelerator telemetry" in speculative


def test_the_weaker_server_decides_for_both_and_the_report_says_so() -> None:
    found = look(FakeServer(usage="continuous"), FakeServer(usage="rejects_continuous"))
    assert found.counting.usage == "final"
    (note,) = [note for note in found.notes if "usage" in note and note.startswith("both")]
    assert "all that the speculative server gives" in note
    assert "itl_s), is not available" in note


def test_what_is_doubtful_is_said() -> None:
    swapped = look(
        FakeServer(VLLM_MODELS, pages=VLLM_DRAFTING), FakeServer(VLLM_MODELS, pages=VLLM_BASELINE)
    )
    assert any("are the two addresses swapped?" in note for note in swapped.notes)
    assert any("nothing confirms that it speculates" in note for note in swapped.notes)
    mixed = look(FakeServer(pages=LLAMA_CPP), FakeServer(pages=SGLANG))
    assert any("llama.cpp b6000-abcdef and sglang 0.5.2" in note for note in mixed.notes)
    assert not any("nothing confirms" in note for note in mixed.notes)


def test_the_faults_of_both_servers_are_told_at_once() -> None:
    with serving(FakeServer(refuses=["ignore_eos"])) as one, serving(FakeServer()) as two:
        asked = planned(one.url, two.url)
        two.models = [{"id": "a"}, {"id": "b"}]
        with pytest.raises(DeploymentError) as caught:
            look_at(asked)
    text = str(caught.value)
    assert f"attach.baseline: {one.url} refuses fields" in text
    assert "fixed_length: false in workload chat" in text
    assert f"attach.speculative: {two.url} serves 2 models (a, b)" in text


def test_a_metric_that_needs_token_counts_is_refused_where_there_are_none() -> None:
    silent = {"usage": "never"}
    with pytest.raises(DeploymentError, match=r"set measure\.metric to one of speedup_e2e"):
        look(FakeServer(), FakeServer(**silent))  # type: ignore[arg-type]
    found = look(
        FakeServer(),
        FakeServer(**silent),  # type: ignore[arg-type]
        measure={"metric": "speedup_e2e"},
    )
    assert found.counting.usage == "none"


def test_a_question_is_asked_once_however_many_trials_ask_it() -> None:
    asked = planned(
        "http://a:1",
        "http://a:2",
        workloads=[CHAT, CHAT | {"name": "other"}, CHAT | {"name": "free", "fixed_length": False}],
        batch_size=[1, 2, 4],
        temperature=[0.0, 0.8],
    )
    found = questions(asked.trials)
    assert [(q.sampling.temperature, q.fixed_length) for q in found] == [
        (0.0, True),
        (0.8, True),
        (0.0, False),
        (0.8, False),
    ]
    assert found[0].workloads == ("chat", "other")
    assert found[2].workloads == ("free",)


def test_every_sampling_field_of_a_trial_is_part_of_the_question() -> None:
    trial: Trial = planned("http://a:1", "http://a:2", sampling={"top_k": 5}).trials[-1]
    assert questions([trial])[0].sampling.top_k == 5
    bare = replace(questions([trial])[0]).bare
    assert bare.sampling.top_k is None
    assert not bare.sampling.seeded
