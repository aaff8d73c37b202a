"""Where the arms' greedy answers to a functional case part, to be put to the target once more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import orjson

from orchestrator.run.suites.completion import completion_of
from orchestrator.run.suites.margins import Parting
from orchestrator.run.suites.record import Asked

PROCESSED = frozenset(
    (
        "repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias",
        "response_format", "structured_outputs", "tools", "echo",
    )
)  # fmt: skip
"""What changes the scores that a token is chosen by, so that the target's own say nothing of the
choice; or, as echo, what the answer's tokens are."""


def parting_id(case: str, part: str) -> str:
    """Names one request of the suite."""
    return f"{case} {part}"


def same_request(one: Asked, other: Asked) -> bool:
    """Whether two subjects were asked the same: what is made from a subject's own earlier answer (a
    stop word, a prompt that fills the context) may be another in each arm."""
    mine, its = orjson.loads(one.ask.body), orjson.loads(other.ask.body)
    return bool({**mine, "model": None} == {**its, "model": None})


def partings(asked: Sequence[Asked], cases: Collection[str]) -> Iterator[Parting]:
    """Of the plain greedy requests of these cases those whose answers differ, token ids and all."""
    theirs = {parting_id(one.case, one.part): one for one in asked if one.subject == "baseline"}
    for mine in asked:
        key = parting_id(mine.case, mine.part)
        other = theirs.get(key)
        if mine.subject != "speculative" or mine.case not in cases or other is None:
            continue
        if not same_request(mine, other):
            continue
        body = orjson.loads(mine.ask.body)
        if body.get("temperature") != 0 or body.keys() & PROCESSED:
            continue
        ours, base = completion_of(mine.answer), completion_of(other.answer)
        if ours is not None and base is not None and ours.token_ids != base.token_ids:
            yield Parting(key, base, ours)
