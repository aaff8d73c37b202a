"""A statement without words: a key, and the values that belong into its sentence.

The words are the report's, in every language it speaks; here only what is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Message:
    """`key` names the sentence; every value may itself be a message or several."""

    key: str
    values: Mapping[str, Value] = field(default_factory=dict)


Value: TypeAlias = "str | int | float | Message | tuple[Value, ...]"


SPOKEN = "value.spoken"
"""Key of a sentence that an earlier stage said in English, as its value `english`."""


def spoken(english: str) -> Message:
    """An earlier stage's sentence, which the report may know in its other languages."""
    return Message(SPOKEN, {"english": english})


def said(key: str, **values: Value) -> Message:
    """Short for a message with values."""
    return Message(key, values)
