"""Sentence embeddings without a model: texts with the same words get the same direction."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence

from orchestrator.analyse.words import words

DIMENSIONS = 64


class BagOfWordsEmbedder:
    """Counts of hashed words, scaled to length 1. The cosine of two texts without a word in common
    is near 0; an empty text has the first direction."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    counts = Counter(zlib.crc32(word.encode()) % DIMENSIONS for word in words(text))
    if not counts:
        return [1.0] + [0.0] * (DIMENSIONS - 1)
    length = math.sqrt(sum(n * n for n in counts.values()))
    return [counts[i] / length for i in range(DIMENSIONS)]
