"""Prompts of random tokens: only when asked for by name, and labelled wherever they appear.

Speculation guesses text. Random tokens cannot be guessed, and a model's answer to them is unlike
its answer to a person: a speedup measured on them says nothing about a real workload.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from orchestrator.errors import WorkloadError
from orchestrator.plan.block import Prompt
from orchestrator.workloads.prompt_set import PromptSet

if TYPE_CHECKING:
    import numpy

LABEL = "random-tokens"
_REFERENCE = re.compile(
    r"count=(?P<count>\d{1,7}),tokens=(?P<tokens>\d{1,7})(,seed=(?P<seed>\d{1,18}))?"
)
_ROUNDS = 8


class Tokenizer(Protocol):
    """What random prompts need of the target's tokenizer; no special tokens are added."""

    @property
    def vocabulary_size(self) -> int: ...

    def encode(self, text: str) -> Sequence[int]: ...

    def decode(self, token_ids: Sequence[int]) -> str: ...


def random_prompts_from(reference: str, tokenizer: Tokenizer | None) -> PromptSet:
    """The set of `count=64,tokens=128,seed=7` (the part behind `random:`).

    Raises: WorkloadError for another spelling, or without the target's tokenizer.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None or int(match["count"]) < 1 or int(match["tokens"]) < 1:
        raise WorkloadError(
            "prompts: must be random:count=N,tokens=N[,seed=N] with N of 1 or more, "
            f"got 'random:{reference}'"
        )
    if tokenizer is None:
        raise WorkloadError(
            f"prompts: random:{reference} needs the target's tokenizer, and there is none here; "
            "use real text (bundled:chat) or a target whose tokenizer is at hand"
        )
    import numpy

    generator = numpy.random.default_rng(int(match["seed"] or 0))
    made = random_prompts(int(match["count"]), int(match["tokens"]), tokenizer, generator)
    return replace(made, source=f"random:{reference}")


def random_prompts(
    count: int, tokens: int, tokenizer: Tokenizer, generator: numpy.random.Generator
) -> PromptSet:
    """`count` prompts of `tokens` random tokens each, as the tokenizer reads them back.

    Text of random ids rarely encodes to the same number of ids; it is cut and refilled a few times,
    and `Prompt.tokens` says what it came to.
    """
    prompts = []
    for number in range(1, count + 1):
        text, length = "", 0
        ids: list[int] = []
        for _ in range(_ROUNDS):
            ids += [
                int(i) for i in generator.integers(0, tokenizer.vocabulary_size, tokens - len(ids))
            ]
            candidate = tokenizer.decode(ids).replace("\0", " ").replace("�", " ")
            ids = list(tokenizer.encode(candidate))[:tokens]
            if candidate.strip() and len(ids) > length:
                text, length = tokenizer.decode(ids).replace("�", " "), len(ids)
            if length == tokens:
                break
        if not text.strip():
            raise WorkloadError(f"prompts: the tokenizer decodes {tokens} random tokens to nothing")
        prompts.append(
            Prompt(
                id=f"{LABEL}-{number:05d}",
                category=LABEL,
                turns=(text,),
                tokens=len(tokenizer.encode(text)),
            )
        )
    return PromptSet.of(
        f"{LABEL}-{tokens}",
        f"random:count={count},tokens={tokens}",
        prompts,
        treatment=LABEL,
        notes=("random tokens, not text: not comparable with a real workload",),
    )
