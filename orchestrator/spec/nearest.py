"""The valid name that somebody probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The most similar of `valid`, case and dashes aside; None when nothing is similar.

    A name whose unit alone is missing (`rate` for `rate_rps`) comes before similar letters.

    >>> nearest("batchsize", ["batch_size", "temperature"])
    'batch_size'
    """
    folded = {_folded(candidate): candidate for candidate in valid}
    unit_missing = [full for fold, full in folded.items() if fold.startswith(_folded(name) + "_")]
    if len(unit_missing) == 1:
        return unit_missing[0]
    close = difflib.get_close_matches(_folded(name), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")
