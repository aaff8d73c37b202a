"""Processes forked from a template: here one that has imported nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.serving import template
from orchestrator.serving.environment import allowed_cpus
from orchestrator.serving.template import Template, TemplateContext

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="templates are for Linux hosts"),
]

ROOT = Path(__file__).parents[2]


def say(name: str) -> None:
    print(os.environ.get(name), sorted(os.sched_getaffinity(0)), flush=True)


def fail() -> None:
    sys.exit(3)


def stay() -> None:
    time.sleep(600)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Template]:
    monkeypatch.setattr(template, "PRELOAD", ())
    one = template.start_template(allowed_cpus(), os.environ, tmp_path / "template.log")
    yield one
    if one.process.poll() is None:
        one.stop()


def test_a_child_has_the_askers_environment_and_all_its_cpus(
    running: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "engine.log"
    monkeypatch.setenv("SET_AFTER_THE_TEMPLATE_STARTED", "seen")
    context = TemplateContext(running.address, log, allowed_cpus())

    child = context.Process(target=say, args=("SET_AFTER_THE_TEMPLATE_STARTED",))
    child.start()
    child.join(60)

    assert child.exitcode == 0
    assert log.read_text() == f"seen {sorted(allowed_cpus())}\n"
    assert psutil.Process(running.process.pid).is_running()


def test_the_asker_learns_how_its_child_ended(running: Template) -> None:
    context = TemplateContext(running.address, None, allowed_cpus())
    child = context.Process(target=fail)
    child.start()
    child.join(60)
    assert child.exitcode == 3

    other = context.Process(target=stay)
    other.start()
    other.terminate()
    other.join(60)
    assert other.exitcode == -15


def test_a_child_ends_when_its_asker_is_killed(running: Template) -> None:
    code = (
        "import os, signal; from tests.serving.test_template import *\n"
        f"child = TemplateContext({running.address!r}, None, allowed_cpus()).Process(target=stay)\n"
        "child.start(); print(child.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    child = int(ended.stdout)

    until = time.monotonic() + 60
    while psutil.pid_exists(child) and time.monotonic() < until:
        time.sleep(0.05)

    assert ended.returncode == -9
    assert not psutil.pid_exists(child)


def test_a_template_that_was_stopped_is_not_there(running: Template) -> None:
    assert template.reachable(running.address)

    running.stop()

    assert not template.reachable(running.address)
    assert running.process.returncode == 0


def test_a_template_ends_when_its_owner_is_killed() -> None:
    code = (
        "import os, signal; from pathlib import Path; from orchestrator.serving import template\n"
        "template.PRELOAD = ()\n"
        "one = template.start_template(frozenset({0}), os.environ, Path(os.devnull))\n"
        "print(one.process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    pid = int(ended.stdout)

    until = time.monotonic() + 60
    while psutil.pid_exists(pid) and time.monotonic() < until:
        time.sleep(0.05)

    assert not psutil.pid_exists(pid)
