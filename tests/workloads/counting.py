"""Token counters whose answers can be checked by eye."""

from __future__ import annotations

import re
from collections.abc import Sequence


def count_words(texts: Sequence[str]) -> list[int]:
    """One token per word: "When are quinces ripe?" has 4."""
    return [len(text.split()) for text in texts]


def count_quads(texts: Sequence[str]) -> list[int]:
    """Like a real tokenizer: at most 4 letters a token, and a token per line break or CJK sign."""
    return [
        len(re.findall(r" ?[^\s\u3400-\u9fff]{1,4}|[\u3400-\u9fff]|\n", text)) for text in texts
    ]
