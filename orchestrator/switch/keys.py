"""Keys and tokens: made here, kept as hashes only.

A key has 256 random bits, so one round of SHA-256 hides it: there is nothing to guess from. Do not
hash words of a person's choice this way.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

PREFIX = "sk-switch-"
TOKEN_FILE = "admin.token"
"""In the state folder: an operator's token, where no operators are named."""
SHORTEST = 20
"""Shorter ones are refused before they are hashed."""
LONGEST = 512


def key_from(random_bytes: bytes) -> str:
    """Raises: ValueError for fewer than 32 bytes."""
    if len(random_bytes) < 32:
        raise ValueError(f"a key needs 32 random bytes, got {len(random_bytes)}")
    return PREFIX + random_bytes.hex()


def key_hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def owner(key: str, owners: Iterable[tuple[str, str]]) -> str | None:
    """The name whose hash in `owners` (name, SHA-256 in hex) is the key's.

    Compares with every one of them in constant time: how long it takes says nothing of how near a
    guess was, nor whose it was.
    """
    if not SHORTEST <= len(key) <= LONGEST:
        return None
    given, found = key_hash(key), None
    for name, known in owners:
        if hmac.compare_digest(given, known):
            found = name
    return found
