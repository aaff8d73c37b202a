"""What the planner is told about models, prompts and devices. Everything unknown is None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.plan.block import Prompt


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model's own files say about it."""

    vocab_size: int | None = None
    """Of the input embedding: two models that share tokens have the same."""
    max_position_embeddings: int | None = None
    num_layers: int | None = None
    vocabulary_hash: str | None = None
    """Hash of the tokenizer's tokens and their ids."""
    parameter_bytes: int | None = None
    heads: int | None = None
    """Medusa: one head per position, so no K above it."""
    step_tokens: int | None = None
    """vLLM's `n_predict`: a K above it has to be a multiple of it."""


@dataclass(frozen=True, slots=True)
class PromptSetFacts:
    """What the planner needs of a prompt set, after selection, with system prompts applied.

    `longest_by_turns` holds, per number of turns, the longest first turn in tokens.
    """

    count: int
    hash: str
    shortest_tokens: int | None = None
    mean_tokens: float | None = None
    longest_tokens: int | None = None
    longest_by_turns: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, hash: str, prompts: Sequence[Prompt]) -> PromptSetFacts:
        """Undefined: lengths are None unless every prompt was counted."""
        counted = [(len(p.turns), p.tokens) for p in prompts if p.tokens is not None]
        if not counted or len(counted) < len(prompts):
            return cls(len(prompts), hash)
        longest: dict[int, int] = {}
        for turns, tokens in counted:
            longest[turns] = max(tokens, longest.get(turns, 0))
        lengths = [tokens for _, tokens in counted]
        return cls(
            count=len(prompts),
            hash=hash,
            shortest_tokens=min(lengths),
            mean_tokens=sum(lengths) / len(lengths),
            longest_tokens=max(lengths),
            longest_by_turns=tuple(sorted(longest.items())),
        )

    def context_needed(self, output_tokens: int, *, all_turns: bool) -> int | None:
        """The least context that the longest conversation needs.

        Formula: max over prompts of first turn + answers; with `all_turns` one answer per turn.
        Later questions and the chat template come on top: a lower bound.
        """
        if self.longest_tokens is None:
            return None
        if not all_turns:
            return self.longest_tokens + output_tokens
        return max(tokens + turns * output_tokens for turns, tokens in self.longest_by_turns)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node of the cluster, as Ray and the node's own driver describe it."""

    id: str
    host: str
    """The machine: nodes of one machine share it."""
    cpus: float
    gpus: float
    model: str
    """Of its devices: the accelerator, or the processor where there is none."""
    memory_bytes: int | None = None
    """Of one device."""
    interconnect: str | None = None
    """Between the node's devices: `NVLink`, `PCIe`; None where it is not known."""
    cores: tuple[int, ...] = ()
    """Cores that its processes may run on; empty: not known, so all of the machine."""
    is_head: bool = False


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What there is to run on."""

    gpus: float | None = None
    cpus: float | None = None
    nodes: tuple[NodeFacts, ...] = ()
    """Empty where no cluster was asked: one machine."""


def parse_model_config(
    config: Mapping[str, Any],
    *,
    vocabulary_hash: str | None = None,
    parameter_bytes: int | None = None,
) -> ModelFacts:
    """Facts out of a `config.json`; a nested `text_config` (multimodal models) counts too."""
    nested = config.get("text_config")
    layers: list[Mapping[str, Any]] = [config]
    if isinstance(nested, Mapping):
        layers.insert(0, nested)

    def whole(*names: str) -> int | None:
        for name in names:
            for layer in layers:
                value = layer.get(name)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
        return None

    return ModelFacts(
        vocab_size=whole("vocab_size"),
        max_position_embeddings=whole("max_position_embeddings", "n_positions", "max_seq_len"),
        num_layers=whole("num_hidden_layers", "n_layer"),
        vocabulary_hash=vocabulary_hash,
        parameter_bytes=parameter_bytes,
        heads=whole("medusa_num_heads") or (whole("num_heads") if _is_medusa(config) else None),
        step_tokens=whole("n_predict", "num_nextn_predict_layers", "mtp_num_hidden_layers"),
    )


def _is_medusa(config: Mapping[str, Any]) -> bool:
    return config.get("model_type") == "medusa" or "medusa_num_layers" in config


def vocabulary(tokenizer: Mapping[str, Any]) -> list[list[Any]] | None:
    """Tokens with their ids out of a `tokenizer.json`, sorted by id; None if it has no vocabulary.

    Templates, truncation and padding are left out: they do not change what an id means.
    """
    model = tokenizer.get("model")
    entries = model.get("vocab") if isinstance(model, Mapping) else None
    ids: dict[str, int] = {}
    if isinstance(entries, Mapping):
        ids.update({str(token): int(number) for token, number in entries.items()})
    elif isinstance(entries, list):  # Unigram: a list of [token, score]
        ids.update({str(entry[0]): index for index, entry in enumerate(entries)})
    else:
        return None
    for added in tokenizer.get("added_tokens") or []:
        ids[str(added["content"])] = int(added["id"])
    return [[number, token] for token, number in sorted(ids.items(), key=lambda item: item[::-1])]
