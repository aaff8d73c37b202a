"""From the name of a model to where it is, before anything is started."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.errors import ModelUnavailable
from orchestrator.models.cache import SERVED, model_folder, read_manifest, training_folder
from orchestrator.models.catalogue import CATALOGUE, CatalogueEntry

ModelKind = Literal["catalogue", "path", "hub"]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")


@dataclass(frozen=True)
class ResolvedModel:
    """Where a model is."""

    path_or_id: str
    """A folder, or a Hugging Face id that the engine downloads itself."""
    name: str
    """As it was asked for."""
    kind: ModelKind
    revision: str | None
    """Hash of the weights (prepared models), or the hub's commit where it is known."""
    source: str

    @property
    def local_path(self) -> Path | None:
        """The folder, where there is one on this machine."""
        return Path(self.path_or_id) if os.path.isabs(self.path_or_id) else None  # noqa: PTH117


def resolve(name: str, *, offline: bool) -> ResolvedModel:
    """A catalogue name, a local folder, or a Hugging Face id.

    `offline` forbids relying on a download later: then the model must be on this machine.
    Raises: ModelUnavailable saying what to do.
    """
    entry = CATALOGUE.get(name)
    if entry is not None:
        return _from_catalogue(entry, offline)
    path = Path(name).expanduser()
    if path.exists() or name.startswith((".", "/", "~")):
        return _from_path(name, path)
    if _HUB_ID.fullmatch(name):
        return _from_hub(name, name, offline)
    raise ModelUnavailable(
        f"{name}: must be a catalogue name ({', '.join(CATALOGUE)}), a folder, or a Hugging Face "
        "id such as Qwen/Qwen3-8B; it is none of these"
    )


def _from_catalogue(entry: CatalogueEntry, offline: bool) -> ResolvedModel:
    if entry.trained_by is not None:
        return _from_training(entry.name, entry.trained_by)
    if entry.wheel is None and entry.shipped is None:
        assert entry.hub_id is not None, entry.name
        return _from_hub(entry.name, entry.hub_id, offline)
    folder = model_folder(entry.name)
    manifest = read_manifest(folder)
    if manifest is None:
        raise ModelUnavailable(
            f"{entry.name}: is not prepared on this machine (looked in {folder}); "
            f"prepare it with: python -m orchestrator models prepare {entry.name}"
        )
    return ResolvedModel(
        str(folder), entry.name, "catalogue", manifest.weights_hash, manifest.source
    )


def _from_training(name: str, command: str) -> ResolvedModel:
    folder = training_folder(name) / SERVED
    manifest = read_manifest(folder)
    if manifest is None:
        raise ModelUnavailable(
            f"{name}: does not come with the product and has not been trained here (looked "
            f"in {folder}); train it with: {command}"
        )
    return ResolvedModel(str(folder), name, "catalogue", manifest.weights_hash, manifest.source)


def _from_path(name: str, path: Path) -> ResolvedModel:
    folder = path.resolve()
    if not folder.is_dir():
        raise ModelUnavailable(f"{name}: no such folder ({folder})")
    config = folder / "config.json"
    try:
        content = json.loads(config.read_text(encoding="utf-8"))
    except OSError:
        raise ModelUnavailable(
            f"{name}: a model folder must hold config.json, {folder} does not"
        ) from None
    except ValueError as error:
        raise ModelUnavailable(f"{config}: is not valid JSON ({error})") from None
    if not isinstance(content, dict) or not {"model_type", "architectures"} & set(content):
        raise ModelUnavailable(
            f"{config}: names neither model_type nor architectures, so it is not a model's"
        )
    if not any(any(folder.glob(pattern)) for pattern in _WEIGHTS):
        raise ModelUnavailable(f"{name}: {folder} holds no weights ({', '.join(_WEIGHTS)})")
    manifest = read_manifest(folder)
    revision = manifest.weights_hash if manifest else None
    return ResolvedModel(str(folder), name, "path", revision, f"folder {folder}")


def _from_hub(name: str, hub_id: str, offline: bool) -> ResolvedModel:
    snapshot = hub_snapshot(hub_id)
    if snapshot is not None:
        return ResolvedModel(str(snapshot), name, "hub", snapshot.name, f"hub cache {hub_id}")
    if offline:
        raise ModelUnavailable(
            f"{name}: {hub_id} is not in the Hugging Face cache ({hub_cache()}) and this run is "
            f"offline; download it on a machine with a network with: hf download {hub_id}"
        )
    return ResolvedModel(hub_id, name, "hub", None, f"hub {hub_id}")


def hub_cache() -> Path:
    """Where Hugging Face's libraries keep downloaded models."""
    if given := os.environ.get("HF_HUB_CACHE"):
        return Path(given).expanduser()
    home = os.environ.get("HF_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".cache/huggingface") / "hub"


def hub_snapshot(hub_id: str, revision: str = "main") -> Path | None:
    """The folder of a model downloaded before, if it is whole enough to be served."""
    model = hub_cache() / f"models--{hub_id.replace('/', '--')}"
    try:
        commit = (model / "refs" / revision).read_text(encoding="utf-8").strip()
    except OSError:
        return None
    folder = model / "snapshots" / commit
    whole = (folder / "config.json").exists() and any(
        any(folder.glob(pattern)) for pattern in _WEIGHTS
    )
    return folder.resolve() if whole else None
