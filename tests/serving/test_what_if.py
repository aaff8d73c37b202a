"""A supposed draft: what it proposes, how often it is right, what it costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.serving.engine_arguments import (
    BOTH,
    STAGE_TIMER,
    WHAT_IF,
    head_method,
    worker_extension,
)
from orchestrator.serving.served_engine import from_deployment
from orchestrator.serving.what_if import SETTINGS, WhatIfExtension, WhatIfProposer

PROMPT, ANSWER = [5, 6, 7], list(range(100, 140))


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.waited_until: list[float] = []

    def __call__(self) -> float:
        return self.now_s


def _proposer(acceptance: float = 1.0, cost_s: float = 0.0, length: int = 4) -> Any:
    clock = Clock()
    config = SimpleNamespace(
        additional_config={SETTINGS: {"acceptance": acceptance, "draft_cost_s": cost_s}},
        speculative_config=SimpleNamespace(num_speculative_tokens=length),
        model_config=SimpleNamespace(max_model_len=64, get_vocab_size=lambda: 1000),
    )
    proposer = WhatIfProposer(config, clock=clock, wait=clock.waited_until.append)
    proposer.learn([(PROMPT, ANSWER)])
    return proposer, clock


def _table(*histories: list[int]) -> tuple[Any, Any]:
    tokens = np.zeros((len(histories), 64), dtype=np.int32)
    for row, history in enumerate(histories):
        tokens[row, : len(history)] = history
    return np.array([len(history) for history in histories]), tokens


def test_it_proposes_what_the_target_said_next() -> None:
    proposer, _ = _proposer()
    counts, tokens = _table([*PROMPT, *ANSWER[:2]])
    assert proposer.propose([[ANSWER[1]]], counts, tokens) == [ANSWER[2:6]]


def test_nothing_for_a_prompt_that_is_not_known_or_a_request_still_read() -> None:
    proposer, _ = _proposer()
    counts, tokens = _table([8, 9, 10, 11], [*PROMPT, *ANSWER[:1]])
    assert proposer.propose([[11], []], counts, tokens) == [[], []]


def test_a_row_that_is_given_to_another_request_gets_that_ones_answer() -> None:
    proposer, _ = _proposer()
    proposer.learn([([5, 6, 8, 1], [200, 201, 202])])
    for history, expected in (
        ([*PROMPT, *ANSWER[:1]], ANSWER[1:5]),
        ([5, 6, 8, 1, 200], [201, 202]),
        ([*PROMPT, *ANSWER[:3]], ANSWER[3:7]),
    ):
        counts, tokens = _table(history)
        assert proposer.propose([history[-1:]], counts, tokens) == [expected]


def test_nothing_past_the_engines_context() -> None:
    proposer, _ = _proposer(length=4)
    proposer.learn([(list(range(60)), [1, 2, 3, 4, 5])])
    counts, tokens = _table([*range(60), 1])
    assert proposer.propose([[1]], counts, tokens) == [[2, 3]]


@given(acceptance=st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_as_many_tokens_are_right_as_was_asked(acceptance: float) -> None:
    proposer, _ = _proposer(acceptance)
    prompts = [[n, n + 1, 3 * n] for n in range(60)]
    proposer.learn([(prompt, ANSWER) for prompt in prompts])
    right = drafted = 0
    for prompt in prompts:
        for at in range(1, 30, 4):
            counts, tokens = _table([*prompt, *ANSWER[:at]])
            [draft] = proposer.propose([[ANSWER[at - 1]]], counts, tokens)
            right += sum(a == b for a, b in zip(draft, ANSWER[at:], strict=False))
            drafted += len(draft)
    assert drafted == 60 * 8 * 4
    assert right / drafted == pytest.approx(acceptance, abs=0.035)


def test_a_place_drafted_twice_fares_the_same() -> None:
    proposer, _ = _proposer(0.5)
    counts, tokens = _table([*PROMPT, *ANSWER[:1]])
    first = proposer.propose([[ANSWER[0]]], counts, tokens)[0]
    counts, tokens = _table([*PROMPT, *ANSWER[:2]])
    second = proposer.propose([[ANSWER[1]]], counts, tokens)[0]
    assert first[1:] == second[:3]


def test_a_draft_costs_its_length_once_a_step_and_nothing_where_none_is_made() -> None:
    proposer, clock = _proposer(cost_s=0.002, length=3)
    counts, tokens = _table([*PROMPT, *ANSWER[:1]], [*PROMPT, *ANSWER[:5]])
    proposer.propose([[1], [1]], counts, tokens)
    assert clock.waited_until == [pytest.approx(0.006)]
    counts, tokens = _table([9, 9, 9, 9])
    proposer.propose([[9]], counts, tokens)
    assert len(clock.waited_until) == 1


def test_the_extension_refuses_another_proposer() -> None:
    extension = WhatIfExtension()
    extension.model_runner = SimpleNamespace(drafter=object())
    with pytest.raises(TypeError, match="WhatIfProposer, got object"):
        extension.orchestrator_learn([])
    proposer, _ = _proposer()
    extension.model_runner = SimpleNamespace(drafter=proposer)
    assert extension.orchestrator_learn([([1], [2])]) == 2


def test_it_reaches_vllm_as_a_proposer_of_ours_and_needs_no_draft() -> None:
    speculation = Speculation(
        "what_if", 3, "supposed: accepts 0.7, free", {"acceptance": 0.7, "draft_cost_s": 0.0}
    )
    served = from_deployment(
        Deployment("t", {}, speculation), target_path="/t", draft_path=None, model_name="t"
    )
    assert served.supposes == {"acceptance": 0.7, "draft_cost_s": 0.0}
    assert served.speculative_config() == {
        "method": "custom_class",
        "model": "orchestrator.serving.what_if.WhatIfProposer",
        "num_speculative_tokens": 3,
    }


def test_one_extension_for_what_is_asked() -> None:
    assert worker_extension(times_stages=True, supposes=True) == BOTH
    assert worker_extension(times_stages=True, supposes=False) == STAGE_TIMER
    assert worker_extension(times_stages=False, supposes=True) == WHAT_IF
    assert worker_extension(times_stages=False, supposes=False) is None


def test_eagle_is_a_family_and_the_head_says_which_of_it() -> None:
    third = {"architectures": ["LlamaForCausalLMEagle3"]}
    assert head_method("eagle", third) == "eagle3"
    assert head_method("eagle", {"architectures": ["LlamaForCausalLM"]}) == "eagle"
    assert head_method("eagle", None) == "eagle"
    assert head_method("draft_model", third) == "draft_model"
