"""A message in words, in one of the report's languages."""

from __future__ import annotations

from orchestrator.decide.message import Message
from orchestrator.report.language import LANGUAGES, Language, Words

__all__ = ["LANGUAGES", "Language", "text_of"]


def text_of(message: Message, language: Language = "en") -> str:
    """The sentence of `message`. Several values are joined; none of several is said as well.

    Raises: KeyError for a key without a sentence, or a sentence that needs a value not given.
    """
    return Words(language).message(message)
