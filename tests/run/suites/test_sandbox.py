"""What a sandboxed program may not do. Each limit is tried against a program that passes it."""

from pathlib import Path

import pytest

from orchestrator.run.suites.tasks.sandbox import Ending, Limits, SandboxResult, run_python

QUICK = Limits(wall_s=60, cpu_s=1)


def run(source: str, limits: Limits = QUICK) -> SandboxResult:
    return run_python(source, limits)


@pytest.fixture(scope="module")
def isolation() -> frozenset[str]:
    found = run("pass").isolation
    assert "limits" in found
    return found


def test_a_program_runs_in_a_fresh_folder_with_an_empty_environment() -> None:
    found = run("import os; print(os.listdir('.'), sorted(os.environ)); open('x', 'w').write('1')")
    assert found.ending is Ending.EXITED_0
    # Python itself sets LC_CTYPE in some locales.
    assert found.stdout.replace("'LC_CTYPE', ", "") == "[] ['LANG', 'PATH']\n"
    assert run("import os; print(os.listdir('.'))").stdout == "[]\n"


def test_an_exception_is_a_failure_with_its_text() -> None:
    found = run("raise ValueError('why')")
    assert (found.ending, found.exit_status) == (Ending.FAILED, 1)
    assert found.stderr.rstrip().endswith("ValueError: why")


def test_endless_computing_is_ended_by_cpu_time() -> None:
    assert run("while True: pass").ending is Ending.TIMED_OUT


def test_endless_waiting_is_ended_by_the_clock() -> None:
    found = run("import time; time.sleep(1000)", Limits(wall_s=2))
    assert (found.ending, found.exit_status) == (Ending.TIMED_OUT, None)


def test_memory_is_limited() -> None:
    found = run("x = bytearray(2 * 10**9)")
    assert found.ending is Ending.FAILED
    assert "MemoryError" in found.stderr


def test_files_and_output_are_limited() -> None:
    assert "File too large" in run("open('big', 'wb').write(b'0' * 2**21)").stderr
    assert len(run("print('x' * 2**21)").stdout) <= 20_000
    assert "Too many open files" in run("f = [open('a', 'w') for _ in range(100)]").stderr


def test_there_is_no_network(isolation: frozenset[str]) -> None:
    if "network" not in isolation:
        pytest.skip("this kernel or user may not make network namespaces")
    found = run("import socket; socket.create_connection(('127.0.0.1', 1), 5)")
    assert "Network is unreachable" in found.stderr


def test_other_folders_are_read_only(isolation: frozenset[str], tmp_path: Path) -> None:
    if "filesystem" not in isolation:
        pytest.skip("this kernel or user may not make mount namespaces")
    tmp_path.chmod(0o777)
    found = run(f"open({str(tmp_path / 'x')!r}, 'w')")
    assert found.ending is Ending.FAILED
    assert list(tmp_path.iterdir()) == []


def test_root_is_left_behind(isolation: frozenset[str]) -> None:
    if "user" not in isolation:
        pytest.skip("this kernel may not make user namespaces")
    assert int(run("import os; print(os.getuid())").stdout) != 0


def test_a_program_that_is_no_text_is_a_failure_not_an_error() -> None:
    assert run("\ud800").ending is Ending.FAILED


def test_nothing_is_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tmp_path.chmod(0o755)
    run("open('x', 'w').write('1')")
    assert list(tmp_path.iterdir()) == []
