"""What must hold of each case of the functional suite. One function a rule; pure.

A check raises `Broken` with what was seen; it returns what it saw when all is well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.run.suites.openai import Said

_SHOWN = 60
_TIE = 1e-3
"""In nats: so near, two tokens are equally likely."""


class Broken(Exception):
    """The rule does not hold; the text is what was seen."""


@dataclass(frozen=True)
class Part:
    """One request of a case, read."""

    name: str
    body: Mapping[str, Any]
    said: Said

    @property
    def max_tokens(self) -> int:
        return int(self.body.get("max_tokens", 0))

    @property
    def completion_tokens(self) -> int | None:
        return None if self.said.usage is None else self.said.usage.get("completion_tokens")

    @property
    def prompt_tokens(self) -> int | None:
        return None if self.said.usage is None else self.said.usage.get("prompt_tokens")


@dataclass(frozen=True)
class Seen:
    """A case on one subject: all its parts answered, with status 2xx and without an error."""

    parts: Mapping[str, Part]
    opening: Said
    """The subject's plain greedy answer of up to 48 tokens to the prompt that most cases use."""
    max_model_len: int | None = None

    def __getitem__(self, name: str) -> Part:
        if name not in self.parts:
            raise Broken(f"the request {name!r} could not be made: the server gave no token ids")
        return self.parts[name]

    def __iter__(self) -> Any:
        return iter(self.parts.values())


Check = Callable[[Seen], str]


def answers(seen: Seen) -> str:
    """Every answer has text, ends, and keeps to its length."""
    for part in seen:
        _answered(part)
    return _quoted(next(iter(seen)).said.text)


def varied(seen: Seen) -> str:
    answers(seen)
    texts = {part.said.text for part in seen}
    _must(len(texts) > 1, f"{len(seen.parts)} seeds gave one and the same answer")
    return f"{len(texts)} different answers of {len(seen.parts)}"


def only_the_likeliest(seen: Seen) -> str:
    """The greedy answer; or another, of tokens of which none is less likely than the best. Tokens
    tie exactly where logits are rounded to bfloat16, and then any of them may come."""
    answers(seen)
    tied = False
    for part in seen:
        if divergence(part.said, seen.opening) is None:
            continue
        told = list(_told(part))
        known = len(told) == part.completion_tokens and all(best is not None for _, best in told)
        if not known:
            _same(part.said, seen.opening, "the greedy answer")
        for index, (logprob, best) in enumerate(told):
            _must(
                best is None or logprob >= best - _TIE,
                f"{_quoted(part.said.text)} is not the greedy answer; token {index} has the "
                f"log-probability {logprob:.3f}, another one {best}",
            )
        tied = True
    return "the likeliest token each time, where two tie another one" if tied else "the same"


def repeats_less(seen: Seen) -> str:
    answers(seen)
    plain, penalised = repeats(seen["plain"].said), repeats(seen["penalised"].said)
    seen_text = f"{penalised} tokens come again, {plain} without the penalty"
    _must(penalised < plain or plain == 0, seen_text)
    return seen_text


def reproducible(seen: Seen) -> str:
    answers(seen)
    _same(seen["again"].said, seen["once"].said, "the answer before")
    return "twice the same"


def stops_before_string(seen: Seen) -> str:
    for part in seen:
        _cut_at_string(part, seen.opening)
    return f"stopped before {seen['whole'].body['stop'][0]!r}"


def stops_at_token(seen: Seen) -> str:
    part = seen["whole"]
    token = part.body["stop_token_ids"][0]
    _ended(part, "stop")
    known = list(seen.opening.first.token_ids or ())
    wanted = known[: known.index(token) + 1] if token in known else known
    ids = list(part.said.first.token_ids or ())
    # Servers differ in whether the token that stops is among those that are told.
    _must(ids in (wanted, wanted[:-1]), f"{len(ids)} tokens, must be the first {len(wanted)}")
    _must(
        seen.opening.text.startswith(part.said.text) and part.said.text != seen.opening.text,
        f"{_quoted(part.said.text)} is not the beginning of the greedy answer",
    )
    return f"stopped at token {token}, the {len(wanted)}th"


def one_token(seen: Seen) -> str:
    for part in seen:
        _one(part, seen.opening)
    return "one token"


def as_many_choices(seen: Seen) -> str:
    for part in seen:
        wanted, got = part.body["n"], len(part.said.choices)
        _must(got == wanted, f"{part.name}: {got} choices, must be {wanted}")
        for index, choice in enumerate(part.said.choices):
            _must(bool(choice.text), f"{part.name}: choice {index} is empty")
            _must(
                choice.finish_reason in ("stop", "length"),
                f"{part.name}: choice {index} ends with {choice.finish_reason!r}",
            )
    return f"{len(seen['whole'].said.choices)} choices"


def logprobs_of_every_token(seen: Seen) -> str:
    answers(seen)
    count = 0
    for part in seen:
        told = list(_told(part))
        wanted = part.completion_tokens
        _must(
            bool(told) and (wanted is None or len(told) == wanted),
            f"{part.name}: {len(told)} log-probabilities for {wanted} tokens",
        )
        for index, (logprob, best) in enumerate(told):
            _must(logprob <= 1e-6, f"{part.name}: token {index} has {logprob:.3f}, above 0")
            _must(
                best is None or logprob >= best - _TIE,
                f"{part.name}: token {index} has {logprob:.3f}, another one {best}: at temperature "
                "0 it must be the highest",
            )
        count += len(told)
    return f"{count} log-probabilities"


def logprobs_of_the_prompt(seen: Seen) -> str:
    for part in seen:
        _answered(part)
        body = part.said.body or {}
        told = body.get("prompt_logprobs") or (body.get("choices") or [{}])[0].get(
            "prompt_logprobs"
        )
        _must(isinstance(told, list), f"{part.name}: there are none")
        wanted = part.prompt_tokens
        _must(
            len(told) == wanted,
            f"{part.name}: {len(told)} log-probabilities for {wanted} prompt tokens",
        )
        _must(told[0] is None, f"{part.name}: the first token has one")
        for index, entry in enumerate(told[1:], 1):
            values = [item["logprob"] for item in (entry or {}).values()]
            _must(bool(values) and max(values) <= 1e-6, f"{part.name}: token {index} has {values}")
    return "as many as prompt tokens"


def biased(seen: Seen) -> str:
    forbidden, forced = seen["forbidden"], seen["forced"]
    _answered(forbidden)
    _answered(forced)
    banned = int(next(iter(forbidden.body["logit_bias"])))
    wanted = int(next(iter(forced.body["logit_bias"])))
    for part in (forbidden, forced):
        _must(part.said.first.token_ids is not None, "the server gave no token ids")
    _must(banned not in (forbidden.said.first.token_ids or ()), f"token {banned} came all the same")
    others = {token for token in forced.said.first.token_ids or () if token != wanted}
    _must(not others, f"{len(others)} other tokens came beside {wanted}")
    return "the one did not come, the other did"


def json_object(seen: Seen) -> str:
    part = seen["whole"]
    _answered(part)
    text = part.said.text.strip()
    if part.said.first.finish_reason == "length":
        _must(text.startswith("{"), f"{_quoted(text)} begins no JSON object")
        return "a JSON object that ran out of tokens"
    _must(isinstance(_json(text), dict), f"{_quoted(text)} is no JSON object")
    return _quoted(text)


def json_schema(seen: Seen) -> str:
    """A grammar lets white space go on for ever, and small models do: an answer may run out of
    tokens, but not all of them."""
    whole: list[str] = []
    for part in seen:
        _answered(part)
        text, schema = part.said.text, part.body["response_format"]["json_schema"]["schema"]
        if part.said.first.finish_reason == "length" and _json(text) is None:
            _must(text.lstrip().startswith("{"), f"{part.name}: {_quoted(text)}")
            continue
        _must(fits(_json(text), schema), f"{part.name}: {_quoted(text)}")
        whole.append(text)
    _must(bool(whole), f"no answer of {len(seen.parts)} came to its end")
    return _quoted(whole[0])


def matches_regex(seen: Seen) -> str:
    for part in seen:
        _answered(part)
        wanted = part.body["structured_outputs"]["regex"]
        _must(
            re.fullmatch(wanted, part.said.text) is not None,
            f"{part.name}: {_quoted(part.said.text)}",
        )
    return _quoted(seen["greedy"].said.text)


def one_of_the_choices(seen: Seen) -> str:
    for part in seen:
        _chosen(part)
    return _quoted(seen["greedy"].said.text)


def calls_the_tool(seen: Seen) -> str:
    for part in seen:
        calls = part.said.first.tool_calls
        _must(len(calls) == 1, f"{part.name}: {len(calls)} calls, must be 1")
        _fitting_call(part, calls[0])
    return str(seen["whole"].said.first.tool_calls[0]["function"]["arguments"])


def may_call_the_tool(seen: Seen) -> str:
    part = seen["whole"]
    calls = part.said.first.tool_calls
    _must(bool(calls or part.said.text), "neither words nor a call")
    for call in calls:
        _must(call["function"]["name"] == _tool(part)["name"], f"calls {call['function']['name']}")
        _must(isinstance(_json(call["function"]["arguments"]), dict), "arguments are no JSON")
    return f"{len(calls)} calls" if calls else _quoted(part.said.text)


def streamed_as_whole(seen: Seen) -> str:
    answers(seen)
    whole, streamed = seen["whole"], seen["streamed"]
    _same(streamed.said, whole.said, "the answer that was not streamed")
    _must(streamed.said.done, "the stream ended without [DONE]")
    _must(
        streamed.said.first.finish_reason == whole.said.first.finish_reason,
        f"ends with {streamed.said.first.finish_reason!r}, must end with "
        f"{whole.said.first.finish_reason!r}",
    )
    _must(
        streamed.said.usage is None or streamed.completion_tokens == whole.completion_tokens,
        f"usage says {streamed.completion_tokens} tokens, must say {whole.completion_tokens}",
    )
    return "the same text"


def reads_more(seen: Seen) -> str:
    answers(seen)
    longer, shorter = seen["with"].prompt_tokens, seen["without"].prompt_tokens
    if longer is None or shorter is None:
        return "the server tells no prompt tokens"
    _must(longer > shorter, f"{longer} prompt tokens with it, {shorter} without")
    return f"{longer - shorter} prompt tokens more"


def echoes(seen: Seen) -> str:
    answers(seen)
    echoed, prompt = seen["echoed"].said.text, seen["echoed"].body["prompt"]
    _must(echoed.startswith(prompt), f"{_quoted(echoed)} does not begin with the prompt")
    rest, plain = echoed[len(prompt) :], seen["plain"].said.text
    _must(rest == plain, f"after the prompt {_quoted(rest)}, without echo {_quoted(plain)}")
    return "the prompt, then the answer"


def fills_the_context(seen: Seen) -> str:
    for part in (seen["whole"], seen["streamed"]):
        _ended(part, "length")
        wanted = part.max_tokens
        _must(
            part.completion_tokens in (None, wanted),
            f"{part.name}: {part.completion_tokens} tokens, must be {wanted}",
        )
        _must(
            part.prompt_tokens in (None, len(part.body["prompt"])),
            f"{part.name}: {part.prompt_tokens} prompt tokens, must be {len(part.body['prompt'])}",
        )
    return f"{len(seen['whole'].body['prompt'])} prompt tokens of {seen.max_model_len}"


def each_as_it_asks(seen: Seen) -> str:
    """What does not hang on how a batch is put together; that is compared between the arms."""
    for part in seen:
        _answered(part)
    _single(seen["one"])
    stop = seen["stopped"].body["stop"][0]
    _must(stop not in seen["stopped"].said.text, f"stopped: {stop!r} is in the answer")
    _chosen(seen["constrained"])
    return f"{len(seen.parts)} answers"


def repeats(said: Said) -> int:
    """How many tokens (words, where the server gives no token ids) have been there before."""
    tokens: Sequence[object] = said.first.token_ids or said.text.split()
    return sum(count - 1 for count in Counter(tokens).values())


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether `value` satisfies a schema of closed objects, enumerations and booleans."""
    if "enum" in schema:
        # True is 1 in Python, and not in JSON.
        return any(value == item and type(value) is type(item) for item in schema["enum"])
    if schema["type"] == "boolean":
        return isinstance(value, bool)
    properties = schema["properties"]
    return (
        isinstance(value, dict)
        and set(schema["required"]) <= value.keys() <= properties.keys()
        and all(fits(item, properties[name]) for name, item in value.items())
    )


def _must(holds: bool, seen: str) -> None:
    if not holds:
        raise Broken(seen)


def _answered(part: Part) -> None:
    choice = part.said.first
    _must(bool(choice.text), f"{part.name}: the answer is empty")
    _must(
        choice.finish_reason in ("stop", "length"),
        f"{part.name}: ends with {choice.finish_reason!r}",
    )
    count = part.completion_tokens
    most = part.max_tokens * int(part.body.get("n", 1))
    _must(count is None or count <= most, f"{part.name}: {count} tokens, at most {most} may come")


def _ended(part: Part, wanted: str) -> None:
    got = part.said.first.finish_reason
    _must(got == wanted, f"{part.name}: ends with {got!r}, must end with {wanted!r}")


def _single(part: Part) -> None:
    _ended(part, "length")
    _must(part.completion_tokens in (None, 1), f"{part.name}: {part.completion_tokens} tokens")


def _one(part: Part, opening: Said) -> None:
    _single(part)
    text = part.said.text
    _must(
        opening.text.startswith(text) and len(text) < len(opening.text),
        f"{part.name}: {_quoted(text)} does not begin the greedy answer {_quoted(opening.text)}",
    )


def _cut_at_string(part: Part, opening: Said) -> None:
    _ended(part, "stop")
    stop = part.body["stop"][0]
    wanted = opening.text.partition(stop)[0]
    _must(
        part.said.text == wanted,
        f"{part.name}: {_quoted(part.said.text[-_SHOWN:])}, must end with "
        f"{_quoted(wanted[-_SHOWN:])}",
    )


def _same(said: Said, other: Said, name: str) -> None:
    place = divergence(said, other)
    _must(place is None, f"{_quoted(said.text)} is not {name}; they part at {place}")


def divergence(said: Said, other: Said) -> str | None:
    """Where two answers part: a token where both have ids, else a character; None: nowhere."""
    mine, theirs = said.first.token_ids, other.first.token_ids
    if said.text == other.text:
        return None
    if mine is not None and theirs is not None and mine != theirs:
        pairs = zip(mine, theirs, strict=False)
        first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(theirs)))
        return f"token {first} of {max(len(mine), len(theirs))}"
    letters = zip(said.text, other.text, strict=False)
    shortest = min(len(said.text), len(other.text))
    return f"character {next((i for i, (a, b) in enumerate(letters) if a != b), shortest)}"


def _chosen(part: Part) -> None:
    _answered(part)
    choices = part.body["structured_outputs"]["choice"]
    _must(part.said.text in choices, f"{part.name}: {_quoted(part.said.text)} is none of them")


def _tool(part: Part) -> Mapping[str, Any]:
    function: Mapping[str, Any] = part.body["tools"][0]["function"]
    return function


def _fitting_call(part: Part, call: Mapping[str, Any]) -> None:
    wanted, function = _tool(part), call["function"]
    _must(function["name"] == wanted["name"], f"{part.name}: calls {function['name']!r}")
    _must(
        fits(_json(function["arguments"]), wanted["parameters"]),
        f"{part.name}: arguments {_quoted(function['arguments'])}",
    )


def _told(part: Part) -> list[tuple[float, float | None]]:
    """(its own log-probability, the best one told) for every token, in either API's shape."""
    given = part.said.first.logprobs
    found: list[tuple[float, float | None]] = []
    for piece in given if isinstance(given, list) else [given or {}]:
        for entry in piece.get("content") or ():
            best = [other["logprob"] for other in entry.get("top_logprobs") or ()]
            found.append((entry["logprob"], max(best, default=None)))
        tops = piece.get("top_logprobs") or []
        for index, logprob in enumerate(piece.get("token_logprobs") or ()):
            best = list(tops[index].values()) if index < len(tops) and tops[index] else []
            found.append((logprob, max(best, default=None)))
    return found


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        answers,
        varied,
        only_the_likeliest,
        repeats_less,
        reproducible,
        stops_before_string,
        stops_at_token,
        one_token,
        as_many_choices,
        logprobs_of_every_token,
        logprobs_of_the_prompt,
        biased,
        json_object,
        json_schema,
        matches_regex,
        one_of_the_choices,
        calls_the_tool,
        may_call_the_tool,
        streamed_as_whole,
        reads_more,
        echoes,
        fills_the_context,
        each_as_it_asks,
    )
}
"""By the name that `functional_cases.yaml` gives them."""
