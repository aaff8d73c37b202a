"""Names of models: catalogue, folder, hub; a missing one is an error that says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.errors import ModelUnavailable
from orchestrator.models.cache import CACHE_VARIABLE, describe, write_manifest
from orchestrator.models.resolve import resolve
from orchestrator.models.tokens import count_tokens


def model(folder: Path, config: str = '{"model_type": "llama"}') -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(config)
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture(autouse=True)
def _no_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


def test_a_catalogue_model_that_is_prepared(tmp_path: Path) -> None:
    folder = model(tmp_path / "cache" / "models" / "smollm2-135m-instruct")
    manifest = describe(folder, name="smollm2-135m-instruct", source="pkg", source_sha256="0")
    write_manifest(folder, manifest)

    found = resolve("smollm2-135m-instruct", offline=True)

    assert (found.kind, found.path_or_id) == ("catalogue", str(folder))
    assert found.revision == manifest.weights_hash


def test_the_hash_of_the_weights_changes_with_a_byte(tmp_path: Path) -> None:
    folder = model(tmp_path / "one")
    before = describe(folder, name="one", source="pkg", source_sha256="0").weights_hash
    (folder / "model.safetensors").write_bytes(b"weightz")

    after = describe(folder, name="one", source="pkg", source_sha256="0").weights_hash

    assert before != after


def test_a_catalogue_model_that_is_not_prepared_names_the_command() -> None:
    with pytest.raises(ModelUnavailable, match="orchestrator models prepare smollm2-135m-instruct"):
        resolve("smollm2-135m-instruct", offline=False)


def test_a_folder(tmp_path: Path) -> None:
    folder = model(tmp_path / "mine")

    found = resolve(str(folder), offline=True)

    assert (found.kind, found.path_or_id, found.revision) == ("path", str(folder), None)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "is not valid JSON"),
        ('{"a": 1}', "names neither model_type nor architectures"),
    ],
)
def test_a_folder_that_is_not_a_model(tmp_path: Path, config: str, message: str) -> None:
    folder = model(tmp_path / "mine", config)

    with pytest.raises(ModelUnavailable, match=message):
        resolve(str(folder), offline=True)


def test_a_folder_without_configuration_or_weights(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelUnavailable, match=r"must hold config\.json"):
        resolve(str(tmp_path / "empty"), offline=True)
    folder = model(tmp_path / "half")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelUnavailable, match="holds no weights"):
        resolve(str(folder), offline=True)
    with pytest.raises(ModelUnavailable, match="no such folder"):
        resolve(str(tmp_path / "nowhere"), offline=True)


def test_a_hub_model_in_the_cache_is_used_offline(tmp_path: Path) -> None:
    at = tmp_path / "hub" / "models--Qwen--Qwen3-8B"
    folder = model(at / "snapshots" / "abc123")
    (at / "refs").mkdir()
    (at / "refs" / "main").write_text("abc123\n")

    found = resolve("qwen3-8b", offline=True)

    assert (found.kind, found.path_or_id, found.revision) == ("hub", str(folder), "abc123")


def test_a_hub_model_that_is_missing_offline_says_so() -> None:
    with pytest.raises(ModelUnavailable, match=r"offline; download it .*hf download Qwen/Qwen3-8B"):
        resolve("Qwen/Qwen3-8B", offline=True)


def test_a_hub_model_that_is_missing_online_is_left_to_the_engine() -> None:
    found = resolve("Qwen/Qwen3-8B", offline=False)

    assert (found.path_or_id, found.revision, found.local_path) == ("Qwen/Qwen3-8B", None, None)


def test_a_name_that_is_nothing() -> None:
    with pytest.raises(ModelUnavailable, match="must be a catalogue name"):
        resolve("smollm", offline=False)


def tokenizer(folder: Path) -> None:
    """One token per word, of which the first is special."""
    words = {"<s>": 0, "a": 1, "b": 2}
    folder.mkdir()
    content = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<s>"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(content))


def test_counts_tokens(tmp_path: Path) -> None:
    tokenizer(tmp_path / "mine")

    count = count_tokens(tmp_path / "mine")

    assert count(["a b a", "", "b"]) == [3, 0, 1]
    assert count([]) == []


def test_counting_needs_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"has no tokenizer\.json"):
        count_tokens(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelUnavailable, match="cannot be read as a tokenizer"):
        count_tokens(tmp_path)
