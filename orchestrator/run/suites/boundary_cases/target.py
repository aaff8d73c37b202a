"""What the cases must know of the engine under test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import ModelUnavailable
from orchestrator.models.facts import read_model_facts
from orchestrator.models.resolve import resolve
from orchestrator.models.tokens import special_tokens
from orchestrator.plan.facts import ModelFacts
from orchestrator.ports import Answer

USUAL_SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "<pad>",
    "<|eot_id|>", "<|begin_of_text|>", "[INST]", "[/INST]", "<think>", "<tool_call>",
)  # fmt: skip
"""Where the target's own are not known."""

LONGEST_ANSWER_TOKENS = 256
FIRST_ORDINARY_ID = 300
ORDINARY_IDS = 600
"""Ids that every vocabulary of today has, and that are text: not control tokens, not bytes."""


@dataclass(frozen=True)
class Target:
    """Facts of the target; both arms serve it."""

    max_model_len: int | None
    """Prompt + answer, tokens. None: not known, and cases on lengths are left out."""
    max_num_seqs: int
    max_num_batched_tokens: int | None
    vocab_size: int | None
    special_tokens: tuple[str, ...]

    @property
    def token_id(self) -> int:
        return self.mixed_ids(1)[0]

    def mixed_ids(self, tokens: int, *, start: int = 0) -> list[int]:
        """A prompt of exactly so many tokens, not repetitive; another one for another `start`."""
        first, among = FIRST_ORDINARY_ID, ORDINARY_IDS
        if self.vocab_size is not None and self.vocab_size < first + among:
            first, among = 0, self.vocab_size
        return [first + (start + i * i + 7 * i) % among for i in range(tokens)]

    def fits(self, prompt_tokens: int, max_tokens: int) -> bool:
        """Unknown: taken to fit."""
        return self.max_model_len is None or prompt_tokens + max_tokens <= self.max_model_len

    def longest_answer(self, prompt_tokens: int) -> int:
        """Tokens an answer may have after such a prompt, twice over for how text is cut."""
        if self.max_model_len is None:
            return LONGEST_ANSWER_TOKENS
        return max(1, min(LONGEST_ANSWER_TOKENS, self.max_model_len - 2 * prompt_tokens))


def target_of(deployment: Mapping[str, Any], models: Answer | None = None) -> Target:
    """From `Deployment.as_dict()`, the target's files where they are here, and what the server
    says of itself (`models`: its answer on /v1/models)."""
    engine = deployment["engine"]
    facts, special = _files(str(deployment["target"]))
    limit = engine.get("max_model_len") or _said(models) or facts.max_position_embeddings
    return Target(
        max_model_len=None if limit is None else int(limit),
        max_num_seqs=int(engine.get("max_num_seqs", 64)),
        max_num_batched_tokens=engine.get("max_num_batched_tokens"),
        vocab_size=facts.vocab_size,
        special_tokens=special or USUAL_SPECIAL_TOKENS,
    )


def _files(name: str) -> tuple[ModelFacts, tuple[str, ...]]:
    """Nothing is known of a target whose files are elsewhere: another host's, or simulated."""
    try:
        folder = resolve(name, offline=True).local_path
        if folder is None:
            return ModelFacts(), ()
        return read_model_facts(folder, with_vocabulary=False), special_tokens(folder)
    except ModelUnavailable:
        return ModelFacts(), ()


def _said(models: Answer | None) -> int | None:
    if models is None or models.status != 200:
        return None
    try:
        said = json.loads(models.body)["data"][0].get("max_model_len")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return said if isinstance(said, int) and said > 0 else None
