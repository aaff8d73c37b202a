"""Which facts of the baseline's answer are still in the other arm's answer?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

Kind = Literal["numbers", "names", "identifiers", "urls"]
KINDS: tuple[Kind, ...] = ("numbers", "names", "identifiers", "urls")

_URL = re.compile(r"https?://[^\s<>\"'`)\]}]+", re.IGNORECASE)
# Thousands are separated by a comma or by one of the narrow spaces, never by a plain one.
_THOUSANDS = ",\u00a0\u2009\u202f"
_NUMBER = re.compile(
    rf"(?<![\w.])[-−+]?\d{{1,3}}(?:[{_THOUSANDS}]\d{{3}})+(?:\.\d+)?(?!\w)"
    r"|(?<![\w.])[-−+]?\d+(?:\.\d+)?"
)
_BACKTICKED = re.compile(r"(?<!`)`([^`\n]{1,80})`(?!`)")
_CALL = re.compile(r"\b([A-Za-z_][\w.]*)\(")
_CODE_NAME = re.compile(
    r"\b(?:[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+|_\w+|[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]*)+"
    r"|(?:[A-Z][a-z0-9]+){2,})\b"
)
_NAME = re.compile(r"\b[^\W\d_a-z][^\W\d_]+(?:[-'’][^\W\d_]+)*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n…]|[-*•>#\"“(\d])\s*$")


@dataclass(frozen=True, slots=True)
class KeyInformation:
    """The facts of one answer, by kind, in a normal form."""

    found: Mapping[Kind, frozenset[str]]

    @property
    def count(self) -> int:
        return sum(len(items) for items in self.found.values())


@dataclass(frozen=True, slots=True)
class Kept:
    """How much of the baseline's key information another answer keeps."""

    share: float | None
    """Formula: items kept / items of the baseline. Undefined: the baseline has none."""
    by_kind: Mapping[Kind, float | None]
    lost: Mapping[Kind, tuple[str, ...]]


def key_information(text: str) -> KeyInformation:
    """Numbers, names, code identifiers and URLs of a text.

    Heuristics, the same for both arms:
        numbers: digits with separators of thousands and decimals, as values (1,200.0 is 1200)
        names: capitalised words that do not begin a sentence (scripts with capitals only; German
            nouns count as names, which harms nothing when arms are compared)
        identifiers: in backticks, before a parenthesis, snake_case, camelCase, PascalCase
        urls: http and https, without punctuation at the end
    """
    urls = frozenset(_ends(url)[0] for url in _URL.findall(text))
    rest = _URL.sub(lambda match: " " + _ends(match.group())[1], text)
    identifiers = {_trim(quoted) for quoted in _BACKTICKED.findall(rest)}
    identifiers |= set(_CALL.findall(rest)) | set(_CODE_NAME.findall(rest))
    identifiers = {name for name in identifiers if name and not number_value(name)}
    names = {
        match.group()
        for match in _NAME.finditer(rest)
        if not _SENTENCE_START.search(rest[max(0, match.start() - 8) : match.start()])
        and match.group() not in identifiers
    }
    return KeyInformation(
        {
            "numbers": frozenset(numbers(rest)),
            "names": frozenset(names),
            "identifiers": frozenset(identifiers),
            "urls": urls,
        }
    )


def kept_information(baseline: str, other: str) -> Kept:
    """What share of the baseline's key information the other answer still has.

    An item is kept if the other text has it in the same normal form, of whatever kind; a name also
    if the other text begins a sentence with it. Not symmetric: what the other adds is not counted.
    """
    wanted = key_information(baseline).found
    its = key_information(other).found
    everything = frozenset().union(*its.values())
    lost = {
        kind: tuple(
            sorted(
                item
                for item in wanted[kind]
                if item not in everything and not (kind == "names" and _has_word(other, item))
            )
        )
        for kind in KINDS
    }
    total = sum(len(wanted[kind]) for kind in KINDS)
    missing = sum(len(lost[kind]) for kind in KINDS)
    return Kept(
        share=1 - missing / total if total else None,
        by_kind={
            kind: 1 - len(lost[kind]) / len(wanted[kind]) if wanted[kind] else None
            for kind in KINDS
        },
        lost=lost,
    )


def numbers(text: str) -> list[str]:
    """Every number of a text in normal form, in order.

    >>> numbers("1,200.0 kg, -3 and 0.50; v2 is no number")
    ['1200', '-3', '0.5']
    """
    found = [number_value(match) for match in _NUMBER.findall(text)]
    return [value for value in found if value is not None]


def number_value(text: str) -> str | None:
    """The normal form of one number: no separators of thousands, no zeros at the end.

    Undefined: None when the text is not a number.
    """
    plain = text.strip().replace("−", "-")
    plain = re.sub(rf"[{_THOUSANDS}](?=\d{{3}})", "", plain).lstrip("+")
    try:
        value = Decimal(plain)
    except InvalidOperation:
        return None
    if not value.is_finite():
        return None
    return "0" if value == 0 else f"{value.normalize():f}"


def _ends(url: str) -> tuple[str, str]:
    """A URL and the punctuation that follows it."""
    bare = url.rstrip(".,;:!?*_")
    return bare, url[len(bare) :]


def _trim(quoted: str) -> str:
    return quoted.strip().removesuffix("()")


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
