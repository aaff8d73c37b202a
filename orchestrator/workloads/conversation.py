"""From one record's fields to a `Prompt`: the checks every loader shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.plan.block import Prompt
from orchestrator.workloads.reading import Reading, Row

UNCATEGORISED = "uncategorised"
Speech = tuple[str, str]
"""(role, text)"""


def build_prompt(
    row: Row,
    reading: Reading,
    *,
    identifier: Any,
    category: Any,
    turns: Sequence[Any],
    turns_key: str,
    system: Any = None,
    reference: Sequence[Any] | None = None,
) -> Prompt | None:
    """The prompt, or None after noting each fault: empty or over-long text, no turns, bad types."""
    faults_before = len(reading.faults)
    if not turns:
        reading.fault(row, turns_key, "must hold at least one user turn")
    if len(turns) > reading.limits.turns:
        reading.fault(row, turns_key, f"must hold at most {reading.limits.turns} turns", len(turns))
    for index, turn in enumerate(turns):
        key = turns_key if len(turns) == 1 else f"{turns_key}[{index}]"
        _check_text(row, reading, key, turn, may_be_empty=False)
    for index, answer in enumerate(reference or ()):
        _check_text(row, reading, f"reference[{index}]", answer, may_be_empty=True)
    if reference is not None and len(reference) > len(turns):
        reading.fault(
            row,
            "reference",
            f"must hold at most one answer per turn ({len(turns)})",
            len(reference),
        )
    if system is not None:
        _check_text(row, reading, "system", system, may_be_empty=True)
    name = _identifier(row, reading, identifier)
    kind = _label(row, reading, "category", category) or UNCATEGORISED
    if len(reading.faults) > faults_before:
        return None
    return Prompt(
        id=name,
        category=kind,
        turns=tuple(turns),
        system=system or None,
        reference=tuple(reference) if reference else None,
    )


def alternate(speeches: Iterable[Speech]) -> tuple[list[str], list[str]]:
    """User turns and the answers to them.

    Successive messages of one role are one message (joined by a blank line); answers before the
    first user turn are dropped, since nobody asked. There are as many answers as turns, or one
    fewer when the last turn was not answered.
    """
    turns: list[str] = []
    answers: list[str] = []
    last: str | None = None
    for role, text in speeches:
        if role == "user":
            if last == "user":
                turns[-1] += "\n\n" + text
            else:
                turns.append(text)
        elif not turns:
            continue
        elif last == "assistant":
            answers[-1] += "\n\n" + text
        else:
            answers.append(text)
        last = role
    return turns, answers


@dataclass(frozen=True)
class MessageShape:
    """How one collection writes a message."""

    role_key: str
    text_key: str
    roles: Mapping[str, str]
    """Their names of roles -> system, user or assistant."""
    read_text: Callable[[Any], str | None]
    """None: not a text."""
    text_rule: str
    blank_is_left_out: bool = False


def gather(
    row: Row, reading: Reading, key: str, messages: Sequence[Any], shape: MessageShape
) -> tuple[list[Speech], str | None] | None:
    """What was said, in order, and the system prompt; None after noting every fault."""
    speeches: list[Speech] = []
    system: list[str] = []
    sound = True
    for index, message in enumerate(messages):
        fields = message if isinstance(message, dict) else {}
        speaker, raw = fields.get(shape.role_key), fields.get(shape.text_key)
        role = shape.roles.get(speaker) if isinstance(speaker, str) else None
        text = shape.read_text(raw)
        place = f"{key}[{index}]"
        if role is None:
            rule = f"must be one of {', '.join(shape.roles)}"
            reading.fault(row, f"{place}.{shape.role_key}", rule, speaker or message)
            sound = False
        elif text is None:
            shown = message if raw is None else raw
            reading.fault(row, f"{place}.{shape.text_key}", shape.text_rule, shown)
            sound = False
        elif role == "system":
            system.append(text)
        elif text.strip() or not shape.blank_is_left_out:
            speeches.append((role, text))
    return (speeches, "\n\n".join(system) or None) if sound else None


def absent(value: Any) -> bool:
    """Missing, null, or an empty CSV cell."""
    return value is None or (isinstance(value, str) and not value.strip())


def _identifier(row: Row, reading: Reading, value: Any) -> str:
    if absent(value):
        # By ordinal, not by line: the same records are named alike in CSV, JSON Lines and Parquet.
        return f"{row.ordinal:05d}"
    return _label(row, reading, "id", value) or ""


def _label(row: Row, reading: Reading, key: str, value: Any) -> str | None:
    if absent(value):
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        reading.fault(row, key, "must be a string or an integer", value)
        return None
    text = str(value).strip()
    if len(text) > 200:
        reading.fault(row, key, "must be at most 200 characters", text)
    if not text.isprintable():
        reading.fault(row, key, "must be printable, on one line", text)
    return text


def _check_text(row: Row, reading: Reading, key: str, text: Any, *, may_be_empty: bool) -> None:
    limit = reading.limits.characters
    if not isinstance(text, str):
        reading.fault(row, key, "must be text", text)
    elif not may_be_empty and not text.strip():
        reading.fault(row, key, "must not be empty", text, "write a prompt, or remove the record")
    elif len(text) > limit:
        reading.fault(
            row, key, f"must be at most {limit} characters", len(text), "cut it, or split it"
        )
    elif "\0" in text:
        reading.fault(row, key, "must not hold NUL characters", text)
    elif not _encodable(text):
        reading.fault(row, key, "must be valid Unicode (it holds half a surrogate pair)", text)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
