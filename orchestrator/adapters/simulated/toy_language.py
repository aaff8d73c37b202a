"""A toy language model: next-token scores that depend on the prompt and the three tokens before.

Small enough that its distribution is known exactly, rich enough that every sampling setting shows:
a prompt has its own few words, so answers repeat themselves and penalties have something to do.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log

from orchestrator.adapters.simulated.answers import VOCABULARY, WORDS

FIRST_CHARACTER = VOCABULARY
"""Token ids from here on are single characters: what is no word can be said as well."""
VOCABULARY_SIZE = FIRST_CHARACTER + 0x110000
_CONTEXT = 3
_WORDS_OF_A_PROMPT = 64
_CANDIDATES = 8
_STEP = 0.7
"""Nats between one candidate's score and the next, before the jitter."""
UNLIKELY = -12.0
"""Score of every token that is no candidate."""


def token_text(token: int) -> str:
    """Raises: IndexError, ValueError for an id that is none."""
    return WORDS[token] if token < FIRST_CHARACTER else chr(token - FIRST_CHARACTER)


def tokens_of(text: str) -> tuple[int, ...]:
    """A text, one character a token."""
    return tuple(FIRST_CHARACTER + ord(character) for character in text)


@dataclass(frozen=True, slots=True)
class ToyLanguage:
    """The model's next-token scores for one prompt."""

    code: int
    """A hash of what was asked, adapter included."""

    def scores(self, before: tuple[int, ...]) -> dict[int, float]:
        """Scores (logits) of the candidates after the tokens `before` (the last three count), best
        first; all others have `UNLIKELY`."""
        return dict(_scores(self.code, before[-_CONTEXT:]))


def language_of(text: str, *, weights: str = "") -> ToyLanguage:
    """`weights` names the model that it is: its seed, its adapter."""
    return ToyLanguage(zlib.crc32(f"{weights}\0{text}".encode("utf-8", "surrogatepass")))


@lru_cache(maxsize=65536)
def _scores(code: int, before: tuple[int, ...]) -> tuple[tuple[int, float], ...]:
    draw = zlib.crc32(f"{code} {before}".encode())
    found: dict[int, float] = {}
    score = 0.0
    for rank in range(_CANDIDATES):
        # Words near each other in a walk through the prompt's own: some come back often.
        place = (draw + rank * 7) % _WORDS_OF_A_PROMPT
        token = (code + place * 251) % VOCABULARY
        jitter = ((draw >> (3 * rank)) & 7) / 20
        found.setdefault(token, score)
        score -= _STEP + jitter
    return tuple(found.items())


def log_probabilities(scores: dict[int, float]) -> dict[int, float]:
    """Formula: score − log Σ exp(score), over the candidates given."""
    top = max(scores.values())
    total = top + log(sum(exp(score - top) for score in scores.values()))
    return {token: score - total for token, score in scores.items()}
