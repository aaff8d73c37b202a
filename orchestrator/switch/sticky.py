"""Who stays on which arm: a hash of who asks, so that nothing has to be remembered."""

from __future__ import annotations

import hashlib

_SPAN = 2.0**64


def place(key: str, *, salt: str = "") -> float:
    """Where `key` stands in [0, 1): uniform over keys, the same in every replica and for ever.

    A caller is on the speculative arm when its place is below the share; so a growing share only
    adds callers. Another `salt` deals the places anew.
    """
    digest = hashlib.blake2b(f"{salt}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") / _SPAN
