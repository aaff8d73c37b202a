"""Heads are completed with their target's rows, byte by byte, and prepared from what is shipped."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import ModelUnavailable
from orchestrator.models import prepare as preparing
from orchestrator.models.cache import read_manifest, sha256_of, training_folder
from orchestrator.models.catalogue import CATALOGUE, CatalogueEntry, ShippedHead
from orchestrator.models.heads import complete_head
from orchestrator.models.resolve import resolve


def write(path: Path, **tensors: tuple[str, Any]) -> None:
    """A safetensors file of (dtype, array); arrays of two bytes stand for bfloat16."""
    header: dict[str, Any] = {}
    body = b""
    for name, (dtype, array) in tensors.items():
        raw = array.tobytes()
        header[name.replace("__", ".")] = {
            "dtype": dtype, "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }  # fmt: skip
        body += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def read(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__")
    kinds = {"BF16": np.uint16, "I64": np.int64}
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert begin % (8 if entry["dtype"] == "I64" else 2) == 0
        part = raw[8 + length + begin : 8 + length + end]
        found[name] = np.frombuffer(part, kinds[entry["dtype"]]).reshape(entry["shape"])
    return found


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    embedding = np.arange(40, dtype=np.uint16).reshape(10, 4)
    write(folder / "model.safetensors", model__embed_tokens__weight=("BF16", embedding))
    return folder


def head(folder: Path, ids: list[int]) -> Path:
    folder.mkdir(exist_ok=True)
    offsets = np.array(ids, dtype=np.int64) - np.arange(len(ids))
    fc = np.arange(6, dtype=np.uint16).reshape(2, 3)
    write(folder / "model.safetensors", fc__weight=("BF16", fc), d2t=("I64", offsets))
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


def test_the_rows_are_those_of_the_tokens_that_are_proposed(tmp_path: Path, target: Path) -> None:
    complete_head(head(tmp_path / "head", [1, 4, 7]), target, tmp_path / "served")
    found = read(tmp_path / "served" / "model.safetensors")
    assert found["lm_head.weight"].tolist() == [[4, 5, 6, 7], [16, 17, 18, 19], [28, 29, 30, 31]]
    assert found["fc.weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["d2t"].tolist() == [1, 3, 5]
    assert (tmp_path / "served" / "config.json").exists()


def test_a_head_of_another_target_is_refused(tmp_path: Path, target: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"must be the target's, 0 to 9, got 1 to 12"):
        complete_head(head(tmp_path / "head", [1, 12]), target, tmp_path / "served")


@pytest.mark.parametrize("content", [b"", b"short", struct.pack("<Q", 3) + b"{x}"])
def test_what_is_no_safetensors_file_is_named(tmp_path: Path, target: Path, content: bytes) -> None:
    broken = head(tmp_path / "head", [1])
    (broken / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelUnavailable, match="is not a safetensors file"):
        complete_head(broken, target, tmp_path / "served")


def test_a_shipped_head_is_prepared_whole_once_and_only_if_it_is_the_one(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(preparing, "SHIPPED", tmp_path)
    shipped = ShippedHead("head", sha256_of(head(tmp_path / "head", [2, 3]) / "model.safetensors"))
    entry = CatalogueEntry(
        name="tiny-eagle", kind="draft", parameters=1, licence="MIT", context=8, shipped=shipped,
        method="eagle", targets=("tiny",),
    )  # fmt: skip
    folder = preparing.prepare_shipped(entry, shipped, target, lambda _: None)
    manifest = read_manifest(folder)
    assert manifest is not None and manifest.source == "orchestrator/models/shipped/head"
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert preparing.prepare_shipped(entry, shipped, target, lambda _: None) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before

    other = replace(entry, name="other-eagle")
    with pytest.raises(ModelUnavailable, match="checksum must be 00, got"):
        preparing.prepare_shipped(other, ShippedHead("head", "00"), target, lambda _: None)


def test_a_draft_that_does_not_come_along_says_how_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    name = "smollm2-135m-distilled"
    with pytest.raises(ModelUnavailable, match=r"train it with: python -m orchestrator draft"):
        resolve(name, offline=True)
    with pytest.raises(ModelUnavailable, match=r"train it with: python -m orchestrator draft"):
        preparing.prepare(name)
    assert not training_folder(name).exists()
    states = {row.name: row.state for row in preparing.list_models()}
    assert states[name] == "to be trained"


def test_what_comes_with_the_product_is_what_the_catalogue_says() -> None:
    shipped = {e.shipped.folder: e for e in CATALOGUE.values() if e.shipped is not None}
    assert {path.name for path in preparing.SHIPPED.glob("*/")} == set(shipped)
    for folder, entry in shipped.items():
        weights = preparing.SHIPPED / folder / "model.safetensors"
        assert entry.shipped is not None and sha256_of(weights) == entry.shipped.sha256
        assert weights.stat().st_size <= 10_000_000
        assert entry.name in preparing.shipped_for(entry.targets[0])
