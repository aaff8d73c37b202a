"""Draws a token the way a speculating engine does, rightly or with a planted fault.

The draft is a toy, too: it has the target's candidates in another order of preference.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Set

from orchestrator.adapters.simulated.defects import Defect

SPECULATION_LENGTH = 2
"""Of the planted fault: every third token is a bonus token."""
WRONG_DRAWS = frozenset({Defect.ACCEPTS_TOO_MUCH, Defect.BIASED_BONUS_TOKEN})


def drawn_wrongly(
    target: Mapping[int, float], index: int, rng: random.Random, wrong: Set[Defect]
) -> int:
    """The token at a position of the answer, by an engine with one of `WRONG_DRAWS`.

    accepts_too_much: a draft's token is taken with probability min(1, 3 p/q), not min(1, p/q)
    biased_bonus_token: after K accepted tokens the next one comes from the draft
    """
    total = sum(target.values())
    p = {token: weight / total for token, weight in target.items()}
    preferences = list(p.values())
    q = dict(zip(p, [preferences[-1], *preferences[:-1]], strict=True))
    if Defect.BIASED_BONUS_TOKEN in wrong:
        bonus = index % (SPECULATION_LENGTH + 1) == SPECULATION_LENGTH
        return _draw(q if bonus else p, rng)
    proposed = _draw(q, rng)
    if rng.random() < 3 * p[proposed] / q[proposed]:
        return proposed
    residual = {token: max(p[token] - q[token], 0.0) for token in p}
    return _draw(residual if any(residual.values()) else p, rng)


def _draw(chances: Mapping[int, float], rng: random.Random) -> int:
    return rng.choices(list(chances), list(chances.values()))[0]
