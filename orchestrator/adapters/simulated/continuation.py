"""One answer of a simulated engine as tokens, decided when it is asked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Set
from dataclasses import dataclass

from orchestrator.adapters.simulated.constrained import Constraint, satisfying
from orchestrator.adapters.simulated.defects import Defect
from orchestrator.adapters.simulated.request_settings import RequestSettings
from orchestrator.adapters.simulated.sampler import Chosen, Sampler
from orchestrator.adapters.simulated.toy_language import ToyLanguage, token_text, tokens_of

_OVERRUN = 2
"""Tokens that a drafting engine gives out too many: those accepted behind the end."""


@dataclass(frozen=True)
class Continuation:
    """All tokens of one choice, how it ends, and its text."""

    tokens: tuple[Chosen, ...]
    finish_reason: str
    stop_reason: str | int | None = None
    cut: int | None = None
    """Characters of the text that are given out; None: all."""
    call: str | None = None
    """The name of the function that it calls; the text is then its arguments."""

    def text(self, first: int, end: int) -> str:
        """Text of tokens `first` to `end` − 1, what a stop string cuts off left out."""
        pieces = [token_text(chosen.token) for chosen in self.tokens[:end]]
        start = len("".join(pieces[:first]))
        return "".join(pieces)[start : self.cut]


def continuation(
    language: ToyLanguage,
    settings: RequestSettings,
    *,
    rng: random.Random,
    max_tokens: int,
    natural_length: int,
    wrong: Set[Defect],
) -> Continuation:
    """`natural_length` is where the model ends by itself; beyond `max_tokens` it does not."""
    if settings.tool is not None and Defect.IGNORES_TOOLS not in wrong:
        schema = settings.tool.get("parameters") or {"type": "object"}
        text = satisfying(Constraint("json", schema), rng)
        return _said(text, max_tokens, call=str(settings.tool["name"]))
    if settings.constraint is not None and Defect.IGNORES_CONSTRAINTS not in wrong:
        return _said(satisfying(settings.constraint, rng), max_tokens)
    sampler = Sampler(language, settings.sampling, rng, wrong)
    return _sampled(sampler.next, settings, max_tokens, natural_length, wrong)


def _sampled(
    draw: Callable[[], Chosen],
    settings: RequestSettings,
    max_tokens: int,
    natural_length: int,
    wrong: Set[Defect],
) -> Continuation:
    tokens: list[Chosen] = []
    text = ""
    extra = _OVERRUN if Defect.OVERRUNS_MAX_TOKENS in wrong else 0
    for _ in range(min(max_tokens, natural_length)):
        tokens.append(draw())
        token = tokens[-1].token
        text += token_text(token)
        if token in settings.stop_token_ids:
            if Defect.OVERRUNS_STOP_TOKEN in wrong:
                tokens += [draw() for _ in range(_OVERRUN)]
                return Continuation(tuple(tokens), "stop", token)
            # The token that stops is counted, but not said.
            return Continuation(tuple(tokens), "stop", token, len(text) - len(token_text(token)))
        found = [(place, stop) for stop in settings.stop if (place := text.find(stop)) >= 0]
        if found:
            place, stop = min(found)
            late = Defect.OVERRUNS_STOP_STRING in wrong
            return Continuation(tuple(tokens), "stop", stop, None if late else place)
    if natural_length < max_tokens:
        return Continuation(tuple(tokens), "stop")
    return Continuation((*tokens, *(draw() for _ in range(extra))), "length")


def _said(text: str, max_tokens: int, *, call: str | None = None) -> Continuation:
    """A text that is certain, a character a token."""
    tokens = tuple(Chosen(token, 0.0, ((token, 0.0),)) for token in tokens_of(text))
    finish = "length" if len(tokens) > max_tokens else "stop"
    return Continuation(tokens[:max_tokens], finish, call=call)
