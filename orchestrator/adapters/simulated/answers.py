"""What a simulated model says: text and token ids that depend on the request alone.

Both arms of a pair therefore answer equally (speculation is lossless), and repeatably.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from math import log

_STEMS = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
VOCABULARY = 4093
"""A prime, so that every stride walks through all words."""
WORDS: tuple[str, ...] = tuple(
    f" {_STEMS[i % 60]}{_STEMS[(i // 60) % 60]}{_STEMS[(i // 3600) % 60]}"
    for i in range(VOCABULARY)
)
_GARBAGE = "�!"


@dataclass(frozen=True, slots=True)
class Answer:
    """An endless answer; ask for the part that was generated."""

    start: int
    stride: int
    garbage: bool = False

    def token_ids(self, first: int, end: int) -> tuple[int, ...]:
        """Ids of tokens `first` to `end` − 1."""
        if self.garbage:
            return (0,) * (end - first)
        return tuple([(self.start + i * self.stride) % VOCABULARY for i in range(first, end)])

    def text(self, first: int, end: int) -> str:
        """Text of tokens `first` to `end` − 1; one word a token."""
        if self.garbage:
            return _GARBAGE * (end - first)
        start, stride = self.start, self.stride
        return "".join([WORDS[(start + i * stride) % VOCABULARY] for i in range(first, end)])


def answer_to(prompt: str, *, seed: int | None, temperature: float, garbage: bool) -> Answer:
    """The answer to a prompt: greedy depends on the prompt, sampled on the seed as well."""
    salt = 0 if temperature == 0 or seed is None else seed
    code = zlib.crc32(prompt.encode("utf-8", "surrogatepass"), salt & 0xFFFFFFFF)
    return Answer(code % VOCABULARY, 1 + (code // VOCABULARY) % (VOCABULARY - 1), garbage)


def natural_length(prompt: str, *, seed: int | None, temperature: float, mean: float) -> int:
    """Tokens until the model would end by itself: geometric-like, at least 1, of the given mean.

    Formula: 1 + ⌊(mean − 1) · e⌋ with e exponential of mean 1, drawn from the prompt's own hash.
    """
    salt = 1 if temperature == 0 or seed is None else seed + 1
    u = (zlib.crc32(prompt.encode("utf-8", "surrogatepass"), salt & 0xFFFFFFFF) + 0.5) / 2**32
    return 1 + int((mean - 1) * -log(u)) if mean > 1 else 1


def count_tokens(text: str) -> int:
    """Length of a text in the simulated tokenizer: four characters a token, at least one."""
    return max(1, -(-len(text) // 4))
