"""Checks one answer to one task of any kind."""

from __future__ import annotations

from orchestrator.run.suites.tasks.arithmetic import check_arithmetic
from orchestrator.run.suites.tasks.code import check_code
from orchestrator.run.suites.tasks.extraction import check_extraction
from orchestrator.run.suites.tasks.task import Checked, Task


def check(task: Task, answer: str) -> Checked:
    """Whether an answer is right. Never raises for what an answer says."""
    if task.kind == "arithmetic":
        return check_arithmetic(task, answer)
    if task.kind == "extraction":
        return check_extraction(task, answer)
    return check_code(task, answer)
