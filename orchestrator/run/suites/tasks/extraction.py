"""Does an answer hold the JSON object that was asked for?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from orchestrator.run.suites.tasks.task import Checked, Task


def check_extraction(task: Task, answer: str) -> Checked:
    """Passed if the first JSON object of the answer has every key with its value.

    Values are compared as text without regard to case, spaces at the ends, or the writing of
    numbers (3, 3.0 and "3"); further keys do not matter.
    """
    expected = task.keys or {}
    found = first_object(answer)
    if found is None:
        return Checked(task.id, False, "no JSON object in the answer")
    wrong = [
        f"{key}: read {found.get(key)!r}, expected {value!r}"
        for key, value in expected.items()
        if _plain(found.get(key)) != _plain(value)
    ]
    return Checked(task.id, not wrong, "; ".join(wrong) or "every key has its value")


def key_recall(expected: Mapping[str, str], answer: str) -> float | None:
    """Share of the keys with the right value. Undefined: no keys are expected."""
    if not expected:
        return None
    found = first_object(answer) or {}
    return sum(_plain(found.get(k)) == _plain(v) for k, v in expected.items()) / len(expected)


def first_object(text: str) -> dict[str, Any] | None:
    """The first JSON object anywhere in a text. Undefined: None without a whole one."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _plain(value: Any) -> str | None:
    """A value in a form in which equal facts are equal; None is no value."""
    if value is None:
        return None
    text = " ".join(str(value).split()).casefold()
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return text
    return f"{number:.12g}"
