"""Records of our own shape: one text column and, if wanted, id, category, system, reference.

| column | meaning |
|---|---|
| `prompt`, `text` or `question` | a single user turn |
| `turns` | a list of user turns (in CSV: a JSON array) |
| `messages` | list of `{"role", "content"}` (in CSV: a JSON array); answers: `reference` |
"""

from __future__ import annotations

from typing import Any

from orchestrator.plan.block import Prompt
from orchestrator.workloads.conversation import (
    MessageShape,
    absent,
    alternate,
    build_prompt,
    gather,
)
from orchestrator.workloads.reading import Reading, Row
from orchestrator.workloads.rows import json_cell

TEXT_COLUMNS = ("prompt", "text", "question", "turns", "messages")
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def read_plain(row: Row, reading: Reading) -> Prompt | None:
    """The prompt of a record with exactly one text column."""
    present = [name for name in TEXT_COLUMNS if name in row.fields]
    if len(present) != 1:
        names = ", ".join(TEXT_COLUMNS)
        if not present:
            reading.fault(row, "", f"must have one of the columns {names}", sorted(row.fields))
        else:
            reading.fault(
                row, "", f"must have only one of the columns {names}", present, "keep one of them"
            )
        return None
    column = present[0]
    value = json_cell(row.fields[column]) if column in ("turns", "messages") else row.fields[column]
    system, reference = row.fields.get("system"), _reference(row)
    if column == "messages":
        read = _messages(row, reading, value)
        if read is None:
            return None
        turns, answers, spoken_system = read
        if spoken_system is not None:
            system = spoken_system
        reference = reference if reference is not None else answers or None
    elif column == "turns" and isinstance(value, list):
        turns = value
    else:
        turns = [value]
    return build_prompt(
        row,
        reading,
        identifier=_first(row, ("id", "question_id", "prompt_id")),
        category=row.fields.get("category"),
        turns=turns,
        turns_key=column,
        system=None if absent(system) else system,
        reference=reference,
    )


def _first(row: Row, names: tuple[str, ...]) -> Any:
    return next((row.fields[name] for name in names if not absent(row.fields.get(name))), None)


def _reference(row: Row) -> list[Any] | None:
    value = json_cell(row.fields.get("reference"))
    if absent(value):
        return None
    return value if isinstance(value, list) else [value]


def _messages(
    row: Row, reading: Reading, value: Any
) -> tuple[list[str], list[str], str | None] | None:
    if not isinstance(value, list):
        reading.fault(row, "messages", 'must be a list of {"role", "content"}', value)
        return None
    read = gather(row, reading, "messages", value, SHAPE)
    if read is None:
        return None
    speeches, system = read
    turns, answers = alternate(speeches)
    return turns, answers, system


def _content(value: Any) -> str | None:
    """Text, or a list of text parts as the OpenAI API has them; None for anything else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    parts = [part.get("text") if isinstance(part, dict) else None for part in value]
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if len(texts) == len(parts) else None


SHAPE = MessageShape(
    role_key="role",
    text_key="content",
    roles=ROLES,
    read_text=_content,
    text_rule="must be text (or text parts)",
)
