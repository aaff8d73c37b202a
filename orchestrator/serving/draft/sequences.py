"""What was written and kept, read back for training: sequences, batches, frequent tokens."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True)
class Sequence_:
    """One prompt with the target's answer."""

    category: str
    held_out: bool
    temperature: float
    tokens: Tensor
    """Shape (length,)."""
    hidden: Tensor
    """Shape (length, states x hidden), bfloat16; the last row was never computed and is zero."""
    answer: int
    """Tokens at the end that are the target's."""


def read_sequences(folder: Path) -> list[Sequence_]:
    found = []
    for path in sorted(folder.glob("[0-9]*.safetensors")):
        with safe_open(str(path), framework="pt") as shard:
            rows = json.loads(shard.metadata()["sequences"])
            lengths = [row["length"] for row in rows]
            tokens = shard.get_tensor("tokens").long().split(lengths)
            hidden = shard.get_tensor("hidden").split(lengths)
        found += [
            Sequence_(
                row["category"], row["held_out"], row["temperature"], its_tokens, its_hidden,
                row["answer"],
            )
            for row, its_tokens, its_hidden in zip(rows, tokens, hidden, strict=True)
            if row["answer"] > MOST_AHEAD
        ]  # fmt: skip
    return found


MOST_AHEAD = 5
"""Answers no longer than a chain of drafts say nothing about it."""


@dataclass(frozen=True)
class Batch:
    tokens: Tensor
    """Shape (sequences, length), padded with 0."""
    hidden: Tensor
    """Shape (sequences, length, states x hidden)."""
    inside: Tensor
    """Shape (sequences, length): whether there is a token here at all."""


def batch_of(sequences: Sequence[Sequence_], device: str) -> Batch:
    length = max(len(one.tokens) for one in sequences)
    inside = torch.zeros(len(sequences), length, dtype=torch.bool)
    for index, one in enumerate(sequences):
        inside[index, : len(one.tokens)] = True
    return Batch(
        pad_sequence([one.tokens for one in sequences], batch_first=True).to(device),
        pad_sequence([one.hidden for one in sequences], batch_first=True).to(device),
        inside.to(device),
    )


def shuffled_batches(
    sequences: Sequence[Sequence_], tokens: int, random_: random.Random
) -> Iterator[list[Sequence_]]:
    """Endless; each pass in a new order, sequences of like length together to waste no padding."""
    while True:
        order = sorted(sequences, key=lambda one: (len(one.tokens) // 32, random_.random()))
        batches: list[list[Sequence_]] = [[]]
        for one in order:
            if batches[-1] and (len(batches[-1]) + 1) * len(one.tokens) > tokens:
                batches.append([])
            batches[-1].append(one)
        random_.shuffle(batches)
        yield from batches


def frequent_tokens(sequences: Sequence[Sequence_], count: int, vocabulary: int) -> Tensor:
    """Ids of the most frequent tokens of the answers, ascending; filled up with the lowest ids."""
    seen: Counter[int] = Counter()
    for one in sequences:
        seen.update(one.tokens[-one.answer :].tolist())
    ranked = [token for token, _ in seen.most_common(count)]
    known = set(ranked)
    fill = (token for token in range(vocabulary) if token not in known)
    while len(ranked) < min(count, vocabulary):
        ranked.append(next(fill))
    return torch.tensor(sorted(ranked), dtype=torch.long)
