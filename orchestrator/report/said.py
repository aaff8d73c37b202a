"""A message in words, in one of the report's languages."""

from __future__ import annotations

from typing import Literal

from orchestrator.decide.message import Message, Value
from orchestrator.report.conclusion_texts import CONCLUSION_TEXTS
from orchestrator.report.reason_texts import REASON_TEXTS

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, Language] = ("en", "zh")

TEXTS = {**CONCLUSION_TEXTS, **REASON_TEXTS}
"""By key: the sentence in English and in Chinese; `{name}` stands for a value."""

_BETWEEN = {"en": "; ", "zh": "；"}
_NONE = {"en": "none", "zh": "无"}


def text_of(message: Message, language: Language = "en") -> str:
    """The sentence of `message`. Several values are joined; none of several is said as well.

    Raises: KeyError for a key without a sentence, or a sentence that needs a value not given.
    """
    template = TEXTS[message.key][LANGUAGES.index(language)]
    shown = {name: _shown(value, language) for name, value in message.values.items()}
    return template.format_map(shown)


def _shown(value: Value, language: Language) -> str | int | float:
    if isinstance(value, Message):
        return text_of(value, language)
    if isinstance(value, tuple):
        parts = [str(_shown(item, language)) for item in value]
        return _BETWEEN[language].join(parts) if parts else _NONE[language]
    return value
