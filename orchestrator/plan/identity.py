"""Content hashes: the same content has the same name, everywhere and always."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def content_hash(value: Any, *, length: int = 12) -> str:
    """The first `length` hex digits of SHA-256 over canonical JSON.

    Raises: TypeError if the value is not plain JSON (so that nothing is hashed by its address),
    ValueError for NaN or infinity.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()[:length]
