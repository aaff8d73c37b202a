"""Temperature, nucleus, penalties, seeds, biases, several choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from orchestrator.analyse.suites.functional_checks.seen import (
    TIE,
    Seen,
    answered,
    divergence,
    must,
    quoted,
    same,
    told,
)
from orchestrator.analyse.suites.functional_checks.text import answers
from orchestrator.run.suites.openai import Said


def varied(seen: Seen) -> str:
    answers(seen)
    texts = {part.said.text for part in seen}
    must(len(texts) > 1, f"{len(seen.parts)} seeds gave one and the same answer")
    return f"{len(texts)} different answers of {len(seen.parts)}"


def only_the_likeliest(seen: Seen) -> str:
    """The greedy answer; or another, of tokens of which none is less likely than the best. Tokens
    tie exactly where logits are rounded to bfloat16, and then any of them may come."""
    answers(seen)
    tied = False
    for part in seen:
        if divergence(part.said, seen.opening) is None:
            continue
        found = list(told(part))
        known = len(found) == part.completion_tokens and all(best is not None for _, best in found)
        if not known:
            same(part.said, seen.opening, "the greedy answer")
        for index, (logprob, best) in enumerate(found):
            must(
                best is None or logprob >= best - TIE,
                f"{quoted(part.said.text)} is not the greedy answer; token {index} has the "
                f"log-probability {logprob:.3f}, another one {best}",
            )
        tied = True
    return "the likeliest token each time, where two tie another one" if tied else "the same"


def repeats_less(seen: Seen) -> str:
    answers(seen)
    plain, penalised = repeats(seen["plain"].said), repeats(seen["penalised"].said)
    seen_text = f"{penalised} tokens come again, {plain} without the penalty"
    must(penalised < plain or plain == 0, seen_text)
    return seen_text


def reproducible(seen: Seen) -> str:
    answers(seen)
    same(seen["again"].said, seen["once"].said, "the answer before")
    return "twice the same"


def as_many_choices(seen: Seen) -> str:
    for part in seen:
        wanted, got = part.body["n"], len(part.said.choices)
        must(got == wanted, f"{part.name}: {got} choices, must be {wanted}")
        for index, choice in enumerate(part.said.choices):
            must(bool(choice.text), f"{part.name}: choice {index} is empty")
            must(
                choice.finish_reason in ("stop", "length"),
                f"{part.name}: choice {index} ends with {choice.finish_reason!r}",
            )
    return f"{len(seen['whole'].said.choices)} choices"


def biased(seen: Seen) -> str:
    forbidden, forced = seen["forbidden"], seen["forced"]
    answered(forbidden)
    answered(forced)
    banned = int(next(iter(forbidden.body["logit_bias"])))
    wanted = int(next(iter(forced.body["logit_bias"])))
    for part in (forbidden, forced):
        must(part.said.first.token_ids is not None, "the server gave no token ids")
    must(banned not in (forbidden.said.first.token_ids or ()), f"token {banned} came all the same")
    others = {token for token in forced.said.first.token_ids or () if token != wanted}
    must(not others, f"{len(others)} other tokens came beside {wanted}")
    return "the one did not come, the other did"


def repeats(said: Said) -> int:
    """How many tokens (words, where the server gives no token ids) have been there before."""
    tokens: Sequence[object] = said.first.token_ids or said.text.split()
    return sum(count - 1 for count in Counter(tokens).values())
