"""A case on one subject as its check sees it, and what every check asks of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.run.suites.openai import Said

SHOWN = 60
TIE = 1e-3
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


def must(holds: bool, seen: str) -> None:
    if not holds:
        raise Broken(seen)


def answered(part: Part) -> None:
    choice = part.said.first
    must(bool(choice.text), f"{part.name}: the answer is empty")
    must(
        choice.finish_reason in ("stop", "length"),
        f"{part.name}: ends with {choice.finish_reason!r}",
    )
    count = part.completion_tokens
    most = part.max_tokens * int(part.body.get("n", 1))
    must(count is None or count <= most, f"{part.name}: {count} tokens, at most {most} may come")


def ended(part: Part, wanted: str) -> None:
    got = part.said.first.finish_reason
    must(got == wanted, f"{part.name}: ends with {got!r}, must end with {wanted!r}")


def single(part: Part) -> None:
    ended(part, "length")
    must(part.completion_tokens in (None, 1), f"{part.name}: {part.completion_tokens} tokens")


def same(said: Said, other: Said, name: str) -> None:
    place = divergence(said, other)
    must(place is None, f"{quoted(said.text)} is not {name}; they part at {place}")


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


def told(part: Part) -> list[tuple[float, float | None]]:
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


def parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def quoted(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "…")
