"""Notes of a made-up knowledge base: each is new, and they are of one length."""

from __future__ import annotations

import random

_WHO = ("Alvarez", "Bergmann", "Chen", "Dubois", "Eriksen", "Farouk", "Gupta", "Haas", "Ivanova")
_WHAT = ("contract", "audit", "shipment", "merger", "forecast", "licence", "recall", "payment")
_STATE = ("was signed", "is delayed", "has been refused", "will be renewed", "was leaked")
_WHERE = ("Lisbon", "Oslo", "Nairobi", "Lima", "Osaka", "Tallinn", "Quebec", "Adelaide")


def secret_note(rng: random.Random, words: int) -> str:
    """So many words of text, different from the first ones on, and the question about it."""
    text: list[str] = []
    while len(text) < words:
        sentence = (
            f"Note {rng.randrange(10**6)}: the {rng.choice(_WHAT)} number "
            f"{rng.randrange(10**5)} of {rng.choice(_WHO)} in {rng.choice(_WHERE)} "
            f"{rng.choice(_STATE)} on day {rng.randrange(1, 366)} "
            f"for {rng.randrange(10**4)} thousand."
        )
        text += sentence.split()
    return " ".join(text[:words]) + "\n\nSummary of these notes:"
