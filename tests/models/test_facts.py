"""A model's folder read without loading it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import ModelUnavailable
from orchestrator.models.facts import parameter_bytes, read_model_facts
from orchestrator.plan.facts import ModelFacts, parse_model_config, vocabulary


def write_safetensors(file: Path, **sizes: int) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, size in sizes.items():
        header[name] = {"dtype": "BF16", "shape": [size // 2], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


def test_a_folder_of_safetensors(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"vocab_size": 49152, "max_position_embeddings": 8192, "num_hidden_layers": 30})
    )
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": []})
    )
    write_safetensors(tmp_path / "model-1.safetensors", a=100, b=50)
    write_safetensors(tmp_path / "model-2.safetensors", c=6)
    facts = read_model_facts(tmp_path)
    assert (facts.vocab_size, facts.max_position_embeddings, facts.num_layers) == (49152, 8192, 30)
    assert facts.parameter_bytes == 156
    assert facts.vocabulary_hash is not None
    assert read_model_facts(tmp_path, with_vocabulary=False).vocabulary_hash is None


def test_what_is_missing_is_none_and_a_missing_config_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"must hold config\.json"):
        read_model_facts(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert read_model_facts(tmp_path) == ModelFacts()
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ModelUnavailable, match="must hold a JSON object, got list"):
        read_model_facts(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelUnavailable, match="must be JSON"):
        read_model_facts(tmp_path)


def test_weights_of_other_kinds_count_by_their_size(tmp_path: Path) -> None:
    assert parameter_bytes(tmp_path) is None
    (tmp_path / "pytorch_model-1.bin").write_bytes(bytes(10))
    (tmp_path / "pytorch_model-2.bin").write_bytes(bytes(7))
    assert parameter_bytes(tmp_path) == 17


def test_a_file_that_only_looks_like_safetensors(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(ModelUnavailable, match="not a safetensors file"):
        parameter_bytes(tmp_path)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"n_positions": 1024, "n_layer": 12},
            ModelFacts(max_position_embeddings=1024, num_layers=12),
        ),
        ({"text_config": {"vocab_size": 9}, "vocab_size": 3}, ModelFacts(vocab_size=9)),
        ({"medusa_num_heads": 4}, ModelFacts(heads=4)),
        ({"model_type": "medusa", "num_heads": 5}, ModelFacts(heads=5)),
        ({"num_heads": 16}, ModelFacts()),
        ({"num_nextn_predict_layers": 1}, ModelFacts(step_tokens=1)),
        ({"vocab_size": True, "num_hidden_layers": "many"}, ModelFacts()),
    ],
    ids=str,
)
def test_configs(config: dict[str, Any], expected: ModelFacts) -> None:
    assert parse_model_config(config) == expected


def test_a_vocabulary_is_what_its_ids_mean_and_nothing_else() -> None:
    """The order in the file, templates and padding do not matter; an added token does."""
    first = {"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 2, "content": "<s>"}]}
    second = {
        "model": {"vocab": {"b": 1, "a": 0}},
        "added_tokens": [{"id": 2, "content": "<s>"}],
        "padding": {"length": 3},
        "truncation": None,
    }
    assert vocabulary(first) == vocabulary(second) == [[0, "a"], [1, "b"], [2, "<s>"]]
    assert vocabulary({"model": {"vocab": [["x", -1.0], ["y", -2.0]]}}) == [[0, "x"], [1, "y"]]
    assert vocabulary({"model": {"type": "none"}}) is None
