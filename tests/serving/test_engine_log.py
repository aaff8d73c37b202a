"""What an engine leaves for whoever waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from orchestrator.serving.engine_log import (
    EngineState,
    log_tail,
    read_state,
    state_path,
    write_state,
)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    log = tmp_path / "engine-1.log"
    state = EngineState("loading", pids=(7, 8), host="here")

    write_state(log, state)
    write_state(log, state.moved_to("failed", failure="out_of_memory", cause="too large"))

    assert read_state(log) == EngineState(
        "failed", (7, 8), "here", failure="out_of_memory", cause="too large"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["engine-1.state.json"]


def test_no_state_and_half_a_state_are_none(tmp_path: Path) -> None:
    log = tmp_path / "engine-1.log"
    assert read_state(log) is None
    state_path(log).write_text('{"phase": "loa')
    assert read_state(log) is None


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "engine-1.log"
    assert log_tail(log) == ""
    log.write_text("a" * 100 + "é" * 10)
    assert log_tail(log, characters=12) == "aa" + "é" * 10


def test_output_of_a_process_and_its_children_goes_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "engine-1.log"
    code = (
        "import subprocess, sys; from pathlib import Path\n"
        "from orchestrator.serving.engine_log import redirect_output\n"
        f"redirect_output(Path({str(log)!r})); print('from python', flush=True)\n"
        "subprocess.run(['sh', '-c', 'echo from a child >&2'])"
    )

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert ended.stdout + ended.stderr == b""
    assert log.read_text() == "from python\nfrom a child\n"
