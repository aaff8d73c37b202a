"""Answers, their ends and their lengths; streamed and whole."""

from __future__ import annotations

from orchestrator.analyse.suites.functional_checks.seen import (
    SHOWN,
    Part,
    Seen,
    answered,
    ended,
    must,
    quoted,
    same,
    single,
)
from orchestrator.run.suites.openai import Said


def answers(seen: Seen) -> str:
    """Every answer has text, ends, and keeps to its length."""
    for part in seen:
        answered(part)
    return quoted(next(iter(seen)).said.text)


def stops_before_string(seen: Seen) -> str:
    for part in seen:
        _cut_at_string(part, seen.opening)
    return f"stopped before {seen['whole'].body['stop'][0]!r}"


def stops_at_token(seen: Seen) -> str:
    part = seen["whole"]
    token = part.body["stop_token_ids"][0]
    ended(part, "stop")
    known = list(seen.opening.first.token_ids or ())
    wanted = known[: known.index(token) + 1] if token in known else known
    ids = list(part.said.first.token_ids or ())
    # Servers differ in whether the token that stops is among those that are told.
    must(ids in (wanted, wanted[:-1]), f"{len(ids)} tokens, must be the first {len(wanted)}")
    must(
        seen.opening.text.startswith(part.said.text) and part.said.text != seen.opening.text,
        f"{quoted(part.said.text)} is not the beginning of the greedy answer",
    )
    return f"stopped at token {token}, the {len(wanted)}th"


def one_token(seen: Seen) -> str:
    for part in seen:
        _one(part, seen.opening)
    return "one token"


def reads_more(seen: Seen) -> str:
    answers(seen)
    longer, shorter = seen["with"].prompt_tokens, seen["without"].prompt_tokens
    if longer is None or shorter is None:
        return "the server tells no prompt tokens"
    must(longer > shorter, f"{longer} prompt tokens with it, {shorter} without")
    return f"{longer - shorter} prompt tokens more"


def echoes(seen: Seen) -> str:
    answers(seen)
    echoed, prompt = seen["echoed"].said.text, seen["echoed"].body["prompt"]
    must(echoed.startswith(prompt), f"{quoted(echoed)} does not begin with the prompt")
    rest, plain = echoed[len(prompt) :], seen["plain"].said.text
    must(rest == plain, f"after the prompt {quoted(rest)}, without echo {quoted(plain)}")
    return "the prompt, then the answer"


def fills_the_context(seen: Seen) -> str:
    for part in (seen["whole"], seen["streamed"]):
        ended(part, "length")
        wanted = part.max_tokens
        must(
            part.completion_tokens in (None, wanted),
            f"{part.name}: {part.completion_tokens} tokens, must be {wanted}",
        )
        must(
            part.prompt_tokens in (None, len(part.body["prompt"])),
            f"{part.name}: {part.prompt_tokens} prompt tokens, must be {len(part.body['prompt'])}",
        )
    return f"{len(seen['whole'].body['prompt'])} prompt tokens of {seen.max_model_len}"


def streamed_as_whole(seen: Seen) -> str:
    answers(seen)
    whole, streamed = seen["whole"], seen["streamed"]
    same(streamed.said, whole.said, "the answer that was not streamed")
    must(streamed.said.done, "the stream ended without [DONE]")
    must(
        streamed.said.first.finish_reason == whole.said.first.finish_reason,
        f"ends with {streamed.said.first.finish_reason!r}, must end with "
        f"{whole.said.first.finish_reason!r}",
    )
    must(
        streamed.said.usage is None or streamed.completion_tokens == whole.completion_tokens,
        f"usage says {streamed.completion_tokens} tokens, must say {whole.completion_tokens}",
    )
    return "the same text"


def _one(part: Part, opening: Said) -> None:
    single(part)
    text = part.said.text
    must(
        opening.text.startswith(text) and len(text) < len(opening.text),
        f"{part.name}: {quoted(text)} does not begin the greedy answer {quoted(opening.text)}",
    )


def _cut_at_string(part: Part, opening: Said) -> None:
    ended(part, "stop")
    stop = part.body["stop"][0]
    wanted = opening.text.partition(stop)[0]
    must(
        part.said.text == wanted,
        f"{part.name}: {quoted(part.said.text[-SHOWN:])}, must end with {quoted(wanted[-SHOWN:])}",
    )
