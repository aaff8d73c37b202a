"""Text cut into words, for scripts with and without spaces."""

from __future__ import annotations

import re

_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:['’\-.][^\W{_UNSPACED}]+)*")


def words(text: str) -> list[str]:
    """Lower-case words; each character of Chinese, Japanese and Thai is a word of its own.

    >>> words("It's 3.5 km: 你好!")
    ["it's", '3.5', 'km', '你', '好']
    """
    return _WORD.findall(text.lower())
