"""Real text cut to a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from orchestrator.workloads.prompt_set import CountTokens

_WORD_END = re.compile(r"(?<=\S)(?=\s|\Z)")


def cut_to_tokens(
    text: str,
    tokens: int,
    count_tokens: CountTokens,
    *,
    shortfall: int = 8,
    length: int | None = None,
) -> tuple[str, int]:
    """The longest beginning of `text` with at most `tokens` tokens, and its count.

    It ends at a word's end; only where that would lose more than `shortfall` tokens (scripts
    without spaces, one endless word) it ends inside a word. Text that is short enough stays whole.
    `length` is the whole text's count, where it is known already.
    Undefined: ("", 0) when not even the first character fits.
    """

    def count(part: str) -> int:
        return int(count_tokens([part])[0])

    whole = count(text) if length is None else length
    if whole <= tokens:
        return text, whole
    ends = [match.end() for match in _WORD_END.finditer(text)]
    best, best_count = _largest_fit(text, ends, tokens, whole, count)
    if tokens - best_count > shortfall:
        after = next((end for end in ends if end > best), len(text))
        inside = range(best + 1, after)
        end, end_count = _largest_fit(text, inside, tokens, None, count)
        if end > best:
            best, best_count = end, end_count
    return text[:best], best_count


def _largest_fit(
    text: str,
    ends: Sequence[int],
    tokens: int,
    whole: int | None,
    count: Callable[[str], int],
) -> tuple[int, int]:
    """The last of `ends` whose prefix was counted and fits; (0, 0) when none does.

    With `whole`, the count of all the text, `ends` are word ends: the next one to try is where the
    limit would lie if all words were alike, and a word counts for one token at least, so that a
    long text takes about five counts of the part that is kept. Otherwise it is plain bisection.
    """
    low, high, best, best_count = -1, len(ends), 0, 0
    high_count = whole
    while high - low > 1:
        middle = (low + high) // 2
        if high_count is not None and high_count > best_count:
            share = (tokens - best_count) / (high_count - best_count)
            middle = min(max(low + round((high - low) * share), low + 1), high - 1)
        length = count(text[: ends[middle]])
        if length <= tokens:
            low, best, best_count = middle, ends[middle], length
            if whole is not None and high > low + tokens - length + 1:
                # That many more words cannot fit; how many tokens they would make is not known.
                high, high_count = low + tokens - length + 1, None
        else:
            high, high_count = middle, length if whole is not None else None
    return best, best_count
