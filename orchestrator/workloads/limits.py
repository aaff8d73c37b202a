"""How much a prompt file may hold. A limit that is passed is an error, never a silent cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds that catch the wrong file before it fills the memory."""

    file_bytes: int = 1 << 30
    prompts: int = 200_000
    characters: int = 1_000_000
    """Per turn, per system prompt and per recorded answer."""
    turns: int = 1_000
    faults_shown: int = 20


DEFAULT_LIMITS = Limits()
