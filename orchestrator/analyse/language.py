"""Which language an answer is in, by script and by its commonest words.

A heuristic for comparing arms: it must give the same answer for the same text, cost nothing and say
"cannot tell" rather than guess. Languages that it does not know come out as None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from orchestrator.analyse.words import words

_SCRIPTS: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "latin"), (0x1E00, 0x1EFF, "latin"),
    (0x0370, 0x03FF, "greek"), (0x0400, 0x052F, "cyrillic"), (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x06FF, "arabic"), (0x0900, 0x097F, "devanagari"), (0x0E00, 0x0E7F, "thai"),
    (0x3040, 0x30FF, "kana"), (0x3400, 0x9FFF, "han"), (0xAC00, 0xD7AF, "hangul"),
)  # fmt: skip
_BY_SCRIPT = {
    "greek": "el", "hebrew": "he", "arabic": "ar", "devanagari": "hi", "thai": "th",
    "hangul": "ko", "han": "zh",
}  # fmt: skip
_COMMONEST: dict[str, str] = {
    "en": (
        "the of and to in is that it for was on are with as be this have from or by not but at "
        "they which you will their can has one if we your an"
    ),
    "de": (
        "der die und das ist nicht ein eine zu den mit sich auf für dem im von es auch als werden "
        "wird sie sind oder wie aus bei nach noch wenn"
    ),
    "fr": (
        "le la les des et est un une dans que qui pour pas sur au avec ce il du par plus ne vous "
        "nous sont aux cette ou mais leur être"
    ),
    "es": (
        "el la los las y es en que de un una por con para del se no al lo como más su pero sus "
        "este o cuando muy ser son"
    ),
    "it": (
        "il la che di e è un una per non con sono del della nel gli i le da si al anche come più "
        "ma questo alla dei o essere"
    ),
    "pt": (
        "o a os as e é de que um uma em do da para com não por no na dos se mais como mas ao ele "
        "das são ou também"
    ),
    "nl": (
        "de het een en van is dat niet in te op voor met zijn aan er die als ook maar om door bij "
        "naar wordt deze of worden kan uit"
    ),
    "ru": (
        "и в не на что с как это по но из у к за для от так же или он она они его быть если мы "
        "при только"
    ),
    "uk": (
        "і в не на що з як це та до але у за для від так або він вона вони його бути якщо ми при "
        "тільки й є"
    ),
}
_COMMON = {code: frozenset(listed.split()) for code, listed in _COMMONEST.items()}
_CYRILLIC = ("ru", "uk")
WORDS_MIN = 5
"""Fewer common words than this decide nothing."""
LEAD = 1.2
"""The first language must have this many times the common words of the second."""
_LETTERS_MIN = 4


def language(text: str) -> str | None:
    """ISO 639-1 code of the language most of a text is in.

    Rules: the commonest script decides (kana anywhere beside Han: ja; Han: zh; Hangul: ko; …);
        Latin and Cyrillic are told apart by common words (en de fr es it pt nl; ru uk), at least 5
        of them and 1.2 times as many as in any other language. Code blocks are left out.
    Undefined: None for too little text, a language not known here, or a tie.
    """
    plain = "".join(part for i, part in enumerate(text.split("```")) if i % 2 == 0)
    scripts = Counter(_scripts(plain))
    if scripts.total() < _LETTERS_MIN:
        return None
    # One Chinese character carries about as much as a syllable or a short word.
    weight = {name: n * (3 if name in ("han", "kana") else 1) for name, n in scripts.items()}
    main = max(weight, key=lambda name: weight[name])
    if main in ("kana", "han") and scripts["kana"] * 10 >= scripts["han"]:
        return "ja" if scripts["kana"] else "zh"
    if main in _BY_SCRIPT:
        return _BY_SCRIPT[main]
    candidates = (
        _CYRILLIC if main == "cyrillic" else tuple(c for c in _COMMON if c not in _CYRILLIC)
    )
    found = words(plain)
    counts = sorted(((sum(w in _COMMON[c] for w in found), c) for c in candidates), reverse=True)
    (most, best), (second, _) = counts[0], counts[1]
    return best if most >= WORDS_MIN and most >= LEAD * second else None


def _scripts(text: str) -> Iterator[str]:
    for character in text:
        if character.isalpha():
            code = ord(character)
            yield next((name for low, high, name in _SCRIPTS if low <= code <= high), "other")
