"""Speculative sampling on toy distributions: a right sampler and deliberately wrong ones.

The target's next token depends on the token before it (a Markov chain), the draft is the target
blurred towards another chain. All samples of a prompt advance together, one speculative step at a
time, so that a thousand continuations cost a few array operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Defect = Literal[
    "none", "accepts too much", "ignores temperature", "biased bonus token", "residual not taken"
]
DEFECTS: tuple[Defect, ...] = (
    "accepts too much", "ignores temperature", "biased bonus token", "residual not taken"
)  # fmt: skip


@dataclass(frozen=True)
class Chains:
    """Logits (tokens, tokens) of target and draft: row = the token before."""

    target: Floats
    draft: Floats

    def at(self, temperature: float) -> tuple[Floats, Floats]:
        return softmax(self.target / temperature), softmax(self.draft / temperature)


def chains(rng: np.random.Generator, tokens: int = 12, blur: float = 0.6) -> Chains:
    target = rng.normal(0, 1.2, (tokens, tokens))
    return Chains(target, target + blur * rng.normal(0, 1.2, (tokens, tokens)))


def softmax(logits: Floats) -> Floats:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def draw(probabilities: Floats, rng: np.random.Generator) -> Ints:
    """One token per row."""
    u = rng.random((len(probabilities), 1))
    drawn = (probabilities.cumsum(axis=1) < u).sum(axis=1)
    return np.minimum(drawn, probabilities.shape[1] - 1)


def sample_plain(
    model: Chains, first: int, count: int, length: int, temperature: float,
    rng: np.random.Generator,
) -> Ints:  # fmt: skip
    """The baseline: one token after another. Shape (count, length)."""
    p, _ = model.at(temperature)
    out = np.empty((count, length), dtype=np.intp)
    last = np.full(count, first)
    for position in range(length):
        last = draw(p[last], rng)
        out[:, position] = last
    return out


def sample_speculative(
    model: Chains, first: int, count: int, length: int, temperature: float,
    rng: np.random.Generator, *, speculation_length: int = 3, defect: Defect = "none",
) -> Ints:  # fmt: skip
    """Leviathan et al. 2023, algorithm 1, with one of the defects. Shape (count, length).

    accepts too much: a draft token is accepted with probability min(1, 2 p/q), not min(1, p/q)
    ignores temperature: the target's probabilities are taken at temperature 1
    biased bonus token: after K accepted tokens the bonus token comes from the draft
    residual not taken: after a rejection the token comes from p instead of (p − q)+
    """
    p, q = model.at(temperature)
    if defect == "ignores temperature":
        p = softmax(model.target)
    excess = 2.0 if defect == "accepts too much" else 1.0
    bonus = q if defect == "biased bonus token" else p
    residual = p if defect == "residual not taken" else np.maximum(p - q, 1e-300)
    residual = residual / residual.sum(axis=1, keepdims=True)
    k = speculation_length
    out = np.full((count, length + k + 1), -1, dtype=np.intp)
    filled = np.zeros(count, dtype=np.intp)
    last = np.full(count, first)
    while (filled < length).any():
        going = np.flatnonzero(filled < length)
        alive = going
        for _ in range(k):
            before = last[alive]
            proposed = draw(q[before], rng)
            ratio = excess * p[before, proposed] / q[before, proposed]
            accepted = rng.random(len(alive)) < ratio
            token = np.where(accepted, proposed, draw(residual[before], rng))
            out[alive, filled[alive]] = token
            last[alive] = token
            filled[alive] += 1
            alive = alive[accepted]
            if not len(alive):
                break
        if len(alive):
            token = draw(bonus[last[alive]], rng)
            out[alive, filled[alive]] = token
            last[alive] = token
            filled[alive] += 1
    return out[:, :length]
