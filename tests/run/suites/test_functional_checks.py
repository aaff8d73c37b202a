"""What equal engines may do: part at exact ties, go on with white space, part in another batch."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.analyse.suites.functional_checks import CHECKS
from orchestrator.analyse.suites.functional_checks.seen import Broken, Part, Seen
from orchestrator.run.suites.openai import Choice, Said

GREEDY = Said((Choice("a b c", "length", (1, 2, 3)),))


def part(name: str, text: str, *, ended: str = "length", **choice: Any) -> Part:
    body = choice.pop("body", {})
    ids = tuple(range(10, 10 + len(text.split())))
    said = Said((Choice(text, ended, ids, **choice),), {"completion_tokens": len(ids)})
    return Part(name, {"max_tokens": 8, **body}, said)


def check(name: str, *parts: Part) -> str:
    return CHECKS[name](Seen({each.name: each for each in parts}, GREEDY))


def told(*tokens: tuple[float, float]) -> dict[str, Any]:
    """Every token's log-probability, and the highest there is."""
    return {"content": [{"logprob": own, "top_logprobs": [{"logprob": best}]}
                        for own, best in tokens]}  # fmt: skip


def test_a_token_that_ties_with_the_likeliest_may_come() -> None:
    tied = part("one", "a x y", logprobs=told((-0.1, -0.1), (-0.9, -0.9), (-0.2, -0.2)))
    assert "tie" in check("only_the_likeliest", tied)


def test_a_token_that_is_less_likely_may_not() -> None:
    other = part("one", "a x y", logprobs=told((-0.1, -0.1), (-0.95, -0.9), (-0.2, -0.2)))
    with pytest.raises(Broken, match=r"token 1 has the log-probability -0\.950, another one -0\.9"):
        check("only_the_likeliest", other)


@pytest.mark.parametrize("logprobs", [None, told((-0.1, -0.1))], ids=["none", "too few"])
def test_without_log_probabilities_it_must_be_the_greedy_answer(logprobs: Any) -> None:
    assert check("only_the_likeliest", part("one", "a b c")) == "the same"
    with pytest.raises(Broken, match="is not the greedy answer"):
        check("only_the_likeliest", part("one", "a x y", logprobs=logprobs))


SCHEMA = {"type": "object", "properties": {"tame": {"type": "boolean"}}, "required": ["tame"]}
CAT = {"response_format": {"json_schema": {"schema": SCHEMA}}}


def cat(name: str, text: str, ended: str = "stop") -> Part:
    return part(name, text, ended=ended, body=CAT)


def test_an_answer_may_run_out_of_tokens_in_white_space_but_not_every_one() -> None:
    endless, whole = cat("whole", '{"tame": \n\n\n', "length"), cat("sampled", '{"tame": true}')
    assert "true" in check("json_schema", endless, whole)
    with pytest.raises(Broken, match="no answer of 1 came to its end"):
        check("json_schema", endless)
    with pytest.raises(Broken, match="whole"):
        check("json_schema", cat("whole", "A cat is", "length"), whole)
    with pytest.raises(Broken, match="whole"):
        check("json_schema", cat("whole", '{"tame": 1}'), whole)
    with pytest.raises(Broken, match="whole"):
        check("json_schema", cat("whole", '{"tame": \n'), whole)


def test_in_another_batch_the_stop_string_need_not_come_but_nothing_may_overrun_it() -> None:
    one = part("one", "z", ended="length")
    choice = {"structured_outputs": {"choice": ["yes"]}}
    constrained = part("constrained", "yes", ended="stop", body=choice)

    def batch(text: str) -> str:
        stopped = part("stopped", text, body={"stop": ["halt"]})
        return check("each_as_it_asks", one, stopped, constrained)

    assert batch("on it goes") == "3 answers"
    with pytest.raises(Broken, match="'halt' is in the answer"):
        batch("on it halt goes")
