"""Real text cut to a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from orchestrator.workloads.prompt_set import CountTokens

_WORD_END = re.compile(r"(?<=\S)(?=\s|\Z)")


def cut_to_tokens(
    text: str, tokens: int, count_tokens: CountTokens, *, shortfall: int = 8
) -> tuple[str, int]:
    """The longest beginning of `text` with at most `tokens` tokens, and its count.

    It ends at a word's end; only where that would lose more than `shortfall` tokens (scripts
    without spaces, one endless word) it ends inside a word. Text that is short enough stays whole.
    Undefined: ("", 0) when not even the first character fits.
    """

    def count(part: str) -> int:
        return int(count_tokens([part])[0])

    whole = count(text)
    if whole <= tokens:
        return text, whole
    ends = [match.end() for match in _WORD_END.finditer(text)]
    best, best_count = _largest_fit(text, ends, tokens, count)
    if tokens - best_count > shortfall:
        after = next(end for end in ends if end > best)
        inside, inside_count = _largest_fit(text, range(best + 1, after), tokens, count)
        if inside > best:
            best, best_count = inside, inside_count
    return text[:best], best_count


def _largest_fit(
    text: str, ends: Sequence[int], tokens: int, count: Callable[[str], int]
) -> tuple[int, int]:
    """The last of `ends` whose prefix was seen to fit, by bisection; (0, 0) when none does."""
    low, high, best, best_count = 0, len(ends) - 1, 0, 0
    while low <= high:
        middle = (low + high) // 2
        length = count(text[: ends[middle]])
        if length <= tokens:
            best, best_count = ends[middle], length
            low = middle + 1
        else:
            high = middle - 1
    return best, best_count
