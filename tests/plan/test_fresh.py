"""Requests without end."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest

from orchestrator.plan.block import Prompt
from orchestrator.plan.fresh import fresh_requests
from orchestrator.plan.trial import WorkloadRef

CHAT = WorkloadRef("chat", "none", "hash", output_tokens=8)
CODE = WorkloadRef("code", "none", "hash", output_tokens=32, endpoint="completion")


def prompts(name: str, count: int = 7) -> list[Prompt]:
    return [Prompt(f"{name}-{i}", name, (f"{name} question {i}",), tokens=10) for i in range(count)]


def made(**given: object):  # type: ignore[no-untyped-def]
    options = {"mix": {}, "seed": 3, "temperature": 0.0, "max_model_len": None} | given
    return fresh_requests([(CHAT, prompts("chat")), (CODE, prompts("code"))], **options)


def test_no_text_comes_twice_in_many_rounds() -> None:
    requests = made()
    texts = [requests.request(index).planned.prompt.turns[0] for index in range(500)]
    assert len(set(texts)) == 500
    assert len({text[:12] for text in texts[7:]}) > 400, "nor its beginning: caches go by prefix"


def test_a_request_depends_on_its_index_alone_also_in_another_process() -> None:
    one, other = made(), pickle.loads(pickle.dumps(made()))  # noqa: S301 - our own
    assert one.request(1234) == other.request(1234)


def test_the_mix_is_kept() -> None:
    requests = made(mix={"chat": 3.0, "code": 1.0})
    seen = Counter(requests.request(i).planned.prompt.category for i in range(2000))
    assert seen["chat"] / 2000 == pytest.approx(0.75, abs=0.03)
    one = next(r for i in range(50) if (r := requests.request(i)).endpoint == "completion")
    assert one.planned.max_tokens == 32


def test_what_does_not_fit_the_context_is_left_out_or_refused() -> None:
    long = Prompt("long", "chat", ("x",), tokens=900)
    kept = fresh_requests(
        [(CHAT, [*prompts("chat"), long])], mix={}, seed=0, temperature=0, max_model_len=200
    )
    assert "long" not in {prompt.id for prompt in kept.workloads[0].prompts}
    with pytest.raises(ValueError, match="no prompt of chat fits max_model_len=200"):
        fresh_requests([(CHAT, [long])], mix={}, seed=0, temperature=0, max_model_len=200)


def test_seeds_only_where_they_matter() -> None:
    assert made().request(5).planned.seed is None
    assert made(temperature=0.8).request(5).planned.seed is not None
