"""All words of the report, in every language it speaks, from one catalogue.

    catalogue/<language>/*.toml       key -> text; every language has every key

A text holds values as `{name}` or `{name:.2f}`. A table of `one` and `other` is a text that depends
on the value `count`; a language without the difference has `other` alone.

Texts under `said` are sentences that earlier stages say in English (why a rung did not qualify, why
a pair does not count): the English text is the pattern that finds them again, values and all.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from orchestrator.decide.message import SPOKEN, Message, Value

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


@dataclass(frozen=True)
class Words:
    """The catalogue in one language.

    >>> Words("zh")("verdict.faster")
    '更快'
    """

    language: Language = "en"

    @property
    def tag(self) -> str:
        """BCP 47, for the `lang` attribute."""
        return {"en": "en", "zh": "zh-Hans"}[self.language]

    def __call__(self, key: str, /, **values: Value) -> str:
        """The text of `key`. Raises: KeyError for a key or a value that is missing."""
        texts = catalogue(self.language)
        if key not in texts:
            one = values.get("count") == 1 and f"{key}.one" in texts
            key = f"{key}.one" if one else f"{key}.other"
        return texts[key].format(**{name: self._shown(value) for name, value in values.items()})

    def has(self, key: str) -> bool:
        return key in catalogue(self.language)

    @property
    def all_keys(self) -> Iterable[str]:
        return catalogue(self.language)

    def message(self, message: Message) -> str:
        """A statement of an earlier stage, in words."""
        if message.key == SPOKEN:
            return self.sentence(str(message.values["english"]))
        return self(message.key, **message.values)

    def listed(self, texts: tuple[str, ...] | list[str]) -> str:
        """Several texts in a row."""
        return catalogue(self.language)["list.separator"].join(texts)

    def sentence(self, english: str) -> str:
        """A sentence that an earlier stage said in English; unknown ones stay as they are."""
        if self.language == "en":
            return english
        for key, pattern in _patterns():
            found = pattern.fullmatch(english)
            if found is not None:
                values = {name: self.sentence(text) for name, text in found.groupdict().items()}
                return catalogue(self.language)[key].format(**values)
        return english

    def label(self, english: str) -> str:
        """A cell's label that was written down in English: `ngram K=4 · chat · batch 8 · T=0`."""
        return " · ".join(self.sentence(part) for part in english.split(" · "))

    def _shown(self, value: Value) -> str | int | float:
        if isinstance(value, Message):
            return self.message(value)
        if isinstance(value, tuple):
            texts = catalogue(self.language)
            parts = [str(self._shown(part)) for part in value]
            return texts["list.clauses"].join(parts) if parts else texts["list.none"]
        return value


@cache
def catalogue(language: Language) -> Mapping[str, str]:
    """Every text of a language by key. Raises: ValueError when two files give one key."""
    texts: dict[str, str] = {}
    folder = files("orchestrator.report").joinpath("catalogue", language)
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            for key, text in _flat(tomllib.loads(file.read_text(encoding="utf-8"))):
                if key in texts:
                    raise ValueError(f"{language}/{file.name}: {key} is given twice")
                texts[key] = text
    return texts


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """English sentences as patterns; those with most fixed text first."""
    said = {key: text for key, text in catalogue("en").items() if key.startswith("said.")}
    return tuple(
        (key, re.compile(_pattern(said[key]), re.DOTALL))
        for key in sorted(said, key=lambda key: -_fixed_length(said[key]))
    )


def _pattern(text: str) -> str:
    """`up to {n} s` -> `up to (?P<n>.+?) s`; `{n:n}` is one word: `up to (?P<n>\\S+?) s`."""
    parts = []
    for literal, name, kind, _ in string.Formatter().parse(text):
        parts.append(re.escape(literal))
        if name is not None:
            parts.append(f"(?P<{name}>\\S+?)" if kind == "n" else f"(?P<{name}>.+?)")
    return "".join(parts)


def _fixed_length(text: str) -> int:
    return sum(len(literal) for literal, *_ in string.Formatter().parse(text))
