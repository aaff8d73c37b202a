"""Is the final number of an answer the right one?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from orchestrator.run.suites.tasks.task import Checked, Task

_NUMBER = re.compile(
    r"(?<![\w.])[-−]?\d+(?:,\d{3})+(?:\.\d+)?(?!\d)|(?<![\w.])[-−]?\d+(?:\.\d+)?(?:\s?/\s?\d+)?(?!\d)"
)
_MARKED = re.compile(r"(?:answer|result)\s*(?:is|:|=)", re.IGNORECASE)
_CLOSING_CHARACTERS = 400


def check_arithmetic(task: Task, answer: str) -> Checked:
    """Passed if the number after the last "Answer:" equals the known one; without the marker, or
    without a number after it, the last number of the answer counts.

    Compared as exact fractions: 0.50, 1/2 and 2/4 are equal, 0.333 and 1/3 are not.
    """
    found = final_number(answer)
    expected = value_of(task.answer or "")
    if expected is None:
        raise ValueError(f"{task.id}: the known answer must be a number, got {task.answer!r}")
    read = "no number" if found is None else str(found)
    return Checked(task.id, found == expected, f"read {read}, expected {expected}")


def final_number(text: str) -> Fraction | None:
    """The number an answer ends on. Undefined: None without one."""
    marks = list(_MARKED.finditer(text))
    if marks:
        after = numbers_in(text[marks[-1].end() :])
        if after:
            # "Answer: 12 − 5 = 7" ends on 7.
            line = text[marks[-1].end() :].lstrip().split("\n", 1)[0]
            on_line = numbers_in(line)
            return on_line[-1] if "=" in line and on_line else after[0]
    every = numbers_in(text)
    return every[-1] if every else None


def contains_numbers(answer: str, expected: Sequence[str]) -> bool:
    """Whether all expected numbers are said at the end (the last 400 characters) of an answer."""
    said = set(numbers_in(answer[-_CLOSING_CHARACTERS:]))
    return all(value_of(number) in said for number in expected)


def numbers_in(text: str) -> list[Fraction]:
    """Every number of a text, in order: 1,250 and 3/4 and −2.5."""
    plain = re.sub(r"\\[td]?frac\{(\d+)\}\{(\d+)\}", r"\1/\2", text)
    found = [value_of(match) for match in _NUMBER.findall(plain)]
    return [value for value in found if value is not None]


def value_of(text: str) -> Fraction | None:
    """The exact value of an integer, decimal or fraction. Undefined: None for anything else."""
    plain = text.replace(",", "").replace("−", "-").replace(" ", "")
    above, slash, below = plain.partition("/")
    try:
        value = Fraction(Decimal(above))
        return value / Fraction(Decimal(below)) if slash else value
    except (InvalidOperation, ValueError, OverflowError, ZeroDivisionError):
        return None
