"""How an answer ended: empty, cut off, or refused. Heuristics, the same for both arms."""

from __future__ import annotations

import re

_REFUSALS = re.compile(
    r"\b(?:i['’]?m|i am) (?:very |really |so )?(?:sorry|afraid),? (?:but )?(?:i |that )"
    r"|\bi (?:can['’]?t|cannot|can not|am unable to|['’]?m unable to|am not able to|won['’]?t) "
    r"(?:help|assist|provide|answer|comply|fulfil|fulfill|do that|support|create|generate|share)"
    r"|\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b[^.]{0,80}"
    r"(?:can['’]?t|cannot|unable|not able|don['’]?t have)"
    r"|\bunable to (?:help|assist|comply|fulfil|fulfill) with (?:that|this)"
    r"|\bes tut mir leid,? (?:aber )?(?:ich|das)|\bich kann (?:ihnen |dir )?(?:dabei|damit) nicht"
    r"|\bje suis désolée?,? mais|\bje ne peux pas (?:vous |t['’])?(?:aider|fournir|répondre)"
    r"|\blo siento,? (?:pero )?(?:no puedo|no me es)|\bno puedo (?:ayudar|proporcionar)"
    r"|(?:很|非常)?抱歉[,，]?.{0,6}(?:无法|不能)|对不起[,，]?.{0,6}(?:无法|不能)"
    r"|申し訳(?:ありません|ございません)が|お(?:答え|手伝い)(?:することは)?できません",
    re.IGNORECASE,
)
_OPENING = 300
"""A refusal is said at the beginning; later such words are mostly quoted or advice."""


def empty(text: str) -> bool:
    """Nothing that can be read: no letter, digit or symbol."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def cut_off(finish_reason: str | None) -> bool | None:
    """Whether the answer hit its limit. Undefined: None when the server did not say."""
    return None if finish_reason is None else finish_reason == "length"


def open_code_block(text: str) -> bool:
    """Whether a fenced code block is begun and not ended."""
    fences = sum(line.lstrip().startswith("```") for line in text.splitlines())
    return fences % 2 == 1


def refuses(text: str) -> bool:
    """Whether the answer begins with one of the usual refusals (en, de, fr, es, zh, ja).

    Counts phrases, not meaning: a rate to compare between arms, not a truth about one answer.
    """
    return _REFUSALS.search(text[:_OPENING]) is not None
