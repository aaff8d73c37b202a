"""The set-up that `make` runs: what it does when something is there, missing or damaged."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "setup.py"


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    venv = tmp_path / "venv"
    venv.mkdir()
    monkeypatch.setattr(sys, "argv", ["setup.py", "--venv", str(venv)])
    monkeypatch.setattr(module, "_ensure_venv", lambda venv: None)
    monkeypatch.setattr(module, "_ensure_uv", lambda python: None)
    return module


def run(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, missing: list[list[str]]
) -> tuple[int, list[bool]]:
    """Exit status, and for every install whether it was one over what is recorded as installed.

    `missing`: what is found missing, look after look; the last one stays.
    """
    installs: list[bool] = []

    def look(venv: Path) -> list[str]:
        return missing.pop(0) if len(missing) > 1 else missing[0]

    def install(python: Path, extra: str, *, again: bool = False) -> int:
        installs.append(again)
        return 0

    monkeypatch.setattr(setup, "_missing", look)
    monkeypatch.setattr(setup, "_install", install)
    return setup.main(), installs


def test_a_complete_set_up_is_left_alone(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(setup, monkeypatch, [[]]) == (0, [False])
    assert run(setup, monkeypatch, [[]]) == (0, [])


def test_packages_whose_files_are_gone_are_installed_again(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(setup, monkeypatch, [["mlflow"], []]) == (0, [False, True])


def test_what_cannot_be_mended_is_said_and_not_called_ready(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(setup, monkeypatch, [["vllm"]]) == (1, [False, True])
    assert "vllm cannot be imported" in capsys.readouterr().err
    assert run(setup, monkeypatch, [[]]) == (0, [False])


def test_what_is_not_installed_is_told_by_name(setup: ModuleType, tmp_path: Path) -> None:
    assert set(setup._missing(tmp_path / "nowhere")) == set(setup._NEEDED)
    setup._NEEDED[:] = ["json", "no_such_package"]
    here = tmp_path / "here" / "bin"
    here.mkdir(parents=True)
    (here / "python").symlink_to(sys.executable)
    assert setup._missing(here.parent) == ["no_such_package"]
