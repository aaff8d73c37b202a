"""Reads the tasks that come with the product."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.errors import WorkloadError
from orchestrator.run.suites.tasks.task import KINDS, Task, TaskKind

FOLDER = Path(__file__).parent
REASONING_ANSWERS = Path(__file__).parents[3] / "workloads" / "bundled" / "reasoning_answers.json"
_NEEDED: dict[TaskKind, tuple[str, ...]] = {
    "arithmetic": ("answer",),
    "extraction": ("keys",),
    "code": ("tests", "solution"),
}


def load_tasks(*kinds: TaskKind) -> tuple[Task, ...]:
    """The bundled tasks of these kinds (all without any), in file order.

    Raises: WorkloadError naming file, line and what is wrong.
    """
    return tuple(task for kind in kinds or KINDS for task in read_tasks(kind, _path(kind)))


def read_tasks(kind: TaskKind, path: Path) -> tuple[Task, ...]:
    """Tasks of one file, a JSON object a line: `id`, `prompt` and what its kind needs."""
    lines = path.read_text(encoding="utf-8").splitlines()
    tasks = [
        _task(kind, line, f"{path.name}:{number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    ids = [task.id for task in tasks]
    twice = sorted({task_id for task_id in ids if ids.count(task_id) > 1})
    if twice:
        raise WorkloadError(f"{path.name}: every id must be used once, got {twice[0]!r} twice")
    return tuple(tasks)


def reasoning_answers() -> dict[str, tuple[str, ...]]:
    """Final numbers of the bundled reasoning prompts that have some, by prompt id."""
    content: dict[str, dict[str, Any]] = json.loads(REASONING_ANSWERS.read_text(encoding="utf-8"))
    return {
        prompt_id: tuple(entry["numbers"])
        for prompt_id, entry in content.items()
        if entry["numbers"]
    }


def _path(kind: TaskKind) -> Path:
    return FOLDER / f"{kind}.jsonl"


def _task(kind: TaskKind, line: str, where: str) -> Task:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise WorkloadError(f"{where}: a task must be a JSON object, {error.msg}") from error
    missing = [key for key in ("id", "prompt", *_NEEDED[kind]) if not row.get(key)]
    if missing:
        raise WorkloadError(f"{where}: {kind} tasks need {missing[0]!r}; add it")
    return Task(kind=kind, **row)
