"""What a draft would have accepted, from its agreement with the target's recorded answers.

Greedy: a draft token is accepted if it is the token the target chose. After the first one that is
not, the rest of the draft is thrown away and the target's own token comes for free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    """Of one category, or of all."""

    answers: int
    drafts: int
    acceptance_length: float | None
    """1 + accepted tokens per draft; None without a draft."""
    per_position: tuple[float, ...]
    """Joint: drafts whose tokens up to this one were all accepted, shape (K,)."""


def expected_acceptance(
    matches: Iterable[tuple[str, Sequence[Sequence[bool]]]], speculation_length: int
) -> dict[str, Expected]:
    """By category (`chat/advice`), by set (`chat`) and under `all`.

    `matches` are (category, rows), one row per position where a draft could begin, with whether its
    j-th token is the target's.

    Drafts begin where a server would begin them: after what the last one brought. A draft that
    reaches past the answer's end is left out, as its end says nothing.
    """
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * (speculation_length + 2))
    for category, rows in matches:
        accepted_at = _drafts(rows, speculation_length)
        for name in dict.fromkeys((category, category.partition("/")[0], "all")):
            total = sums[name]
            total[0] += 1
            for accepted in accepted_at:
                total[1] += 1
                for position in range(accepted):
                    total[2 + position] += 1
    return {name: _expected(total) for name, total in sorted(sums.items())}


def _drafts(rows: Sequence[Sequence[bool]], speculation_length: int) -> list[int]:
    """Accepted tokens of every draft along one answer."""
    found = []
    position = 0
    while position < len(rows):
        row = list(rows[position])[:speculation_length]
        accepted = row.index(False) if False in row else len(row)
        found.append(accepted)
        position += 1 + accepted
    return found


def _expected(total: list[int]) -> Expected:
    answers, drafts, *joint = total
    if not drafts:
        return Expected(answers, 0, None, ())
    return Expected(
        answers, drafts, 1 + sum(joint) / drafts, tuple(count / drafts for count in joint)
    )
