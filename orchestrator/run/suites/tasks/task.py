"""A checkable task and what became of one answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

TaskKind = Literal["arithmetic", "extraction", "code"]
KINDS: tuple[TaskKind, ...] = ("arithmetic", "extraction", "code")


@dataclass(frozen=True, slots=True)
class Task:
    """One question with what is needed to check an answer."""

    id: str
    kind: TaskKind
    prompt: str
    answer: str | None = None
    """arithmetic: the number, as an integer, a decimal or a fraction."""
    keys: Mapping[str, str] | None = None
    """extraction: the JSON object that is asked for."""
    tests: str | None = None
    """code: Python that raises unless the answer's code is right."""
    solution: str | None = None
    """code: an answer that passes, which proves the tests fair."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of one answer. `why` says what was read and what was expected."""

    task_id: str
    passed: bool | None
    """None: could not be checked (the sandbox did not start); never counted as failed."""
    why: str
