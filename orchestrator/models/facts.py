"""What a model's folder says of itself, read without loading anything."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from orchestrator.errors import ModelUnavailable
from orchestrator.plan.facts import ModelFacts, parse_model_config, vocabulary
from orchestrator.plan.identity import content_hash

_LONGEST_HEADER = 100_000_000


def read_model_facts(folder: Path, *, with_vocabulary: bool = True) -> ModelFacts:
    """Facts from `config.json`, `tokenizer.json` and the headers of the weights.

    `with_vocabulary` compares tokens with a draft's; it takes a third of a second, so leave it out
    where no draft is.
    Undefined: what the folder does not hold is None.
    Raises: ModelUnavailable when `config.json` is missing or not what it should be.
    """
    config = _json(folder / "config.json")
    if config is None:
        raise ModelUnavailable(
            f"{folder}: a model's folder must hold config.json, and there is none; "
            "name a folder written by save_pretrained"
        )
    tokenizer = _json(folder / "tokenizer.json") if with_vocabulary else None
    tokens = vocabulary(tokenizer) if tokenizer is not None else None
    return parse_model_config(
        config,
        vocabulary_hash=content_hash(tokens) if tokens is not None else None,
        parameter_bytes=parameter_bytes(folder),
    )


def parameter_bytes(folder: Path) -> int | None:
    """Bytes of all tensors. Undefined: None without weights in the folder.

    Formula: per safetensors file, the largest end offset in its header; files of other kinds by
    their size.
    """
    tensors = sorted(folder.glob("*.safetensors"))
    if tensors:
        return sum(_tensor_bytes(file) for file in tensors)
    others = [*folder.glob("pytorch_model*.bin"), *folder.glob("*.gguf")]
    return sum(file.stat().st_size for file in others) or None


def _tensor_bytes(file: Path) -> int:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8).ljust(8, b"\0"))
        if not 0 < length <= min(_LONGEST_HEADER, file.stat().st_size):
            raise ModelUnavailable(f"{file}: not a safetensors file (header of {length} bytes)")
        header = json.loads(stream.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return int(max(ends, default=0))


def _json(file: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelUnavailable(f"{file}: must be JSON, and is not: {error}") from error
    if not isinstance(value, dict):
        raise ModelUnavailable(f"{file}: must hold a JSON object, got {type(value).__name__}")
    return value
