"""What is asked of the baseline before a supposed draft proposes it, and who is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from orchestrator.errors import ClientFailed
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt
from orchestrator.plan.trial import LoadPoint, Sampling
from orchestrator.ports import Answer, Ask, Endpoint
from orchestrator.run.rehearsal import CONTINUATIONS_PATH, Rehearsal

ENDPOINT = Endpoint("baseline", "http://127.0.0.1:1/b", "m")


class Recording:
    """An Asker that answers what it was given."""

    def __init__(self, *answers: Answer) -> None:
        self.asks: list[Ask] = []
        self._answers = answers

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        self.asks += asks
        return list(self._answers[: len(asks)])


def _block(history: Any = "first_turn", **changes: Any) -> BlockPlan:
    prompt = Prompt("p", "c", ("hello", "and then?"), "be brief", ("hi",))
    planned = PlannedRequest("r", prompt, None, 16, 7)
    fields: dict[str, Any] = {
        "requests": (planned,),
        "load": LoadPoint("closed", concurrency=1),
        "sampling": Sampling(temperature=0.0),
        "endpoint": "chat",
        "fixed_length": True,
        "history": history,
    }
    return BlockPlan(**{**fields, **changes})


def _in_tokens(prompt: list[int], answer: list[int]) -> Answer:
    return Answer(200, json.dumps({"prompt_token_ids": prompt, "choices": [{"token_ids": answer}]}))


def test_it_asks_greedily_in_tokens_and_leaves_nothing_in_the_prefix_cache() -> None:
    asker = Recording(_in_tokens([1, 2], [3, 4]))
    assert Rehearsal(asker).record(ENDPOINT, _block()) == [[[1, 2], [3, 4]]]
    [ask] = asker.asks
    body = json.loads(ask.body)
    assert ask.path == "/v1/chat/completions"
    assert body["temperature"] == 0 and body["return_token_ids"] and body["ignore_eos"]
    assert body["cache_salt"]
    assert body["max_tokens"] == 16
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
    ]


def test_every_turn_of_a_recorded_conversation_is_rehearsed() -> None:
    asker = Recording(_in_tokens([1], [2]), _in_tokens([1, 2, 3], [4]))
    Rehearsal(asker).record(ENDPOINT, _block("reference"))
    roles = [
        [message["role"] for message in json.loads(ask.body)["messages"]] for ask in asker.asks
    ]
    assert roles == [["system", "user"], ["system", "user", "assistant", "user"]]


def test_a_completion_says_its_prompt_in_its_choice() -> None:
    body = json.dumps({"choices": [{"prompt_token_ids": [9], "token_ids": [8]}]})
    asker = Recording(Answer(200, body))
    block = _block(endpoint="completion")
    assert Rehearsal(asker).record(ENDPOINT, block) == [[[9], [8]]]
    assert json.loads(asker.asks[0].body)["prompt"] == "be brief\n\nhello"


@pytest.mark.parametrize("answer", [Answer(500, "no"), Answer(200, "{}"), Answer(None, "")])
def test_an_answer_without_tokens_is_an_error_that_says_what_came(answer: Answer) -> None:
    with pytest.raises(ClientFailed, match=r"baseline: must answer in tokens .* got "):
        Rehearsal(Recording(answer)).record(ENDPOINT, _block())


def test_the_other_arm_is_told_and_has_to_take_it() -> None:
    asker = Recording(Answer(200, '{"known": 1}'))
    Rehearsal(asker).teach(ENDPOINT, [[[1], [2]]])
    assert asker.asks[0].path == CONTINUATIONS_PATH
    assert json.loads(asker.asks[0].body) == [[[1], [2]]]
    with pytest.raises(ClientFailed, match=r"must answer 200 .* got status 404: gone"):
        Rehearsal(Recording(Answer(404, "gone"))).teach(ENDPOINT, [])
