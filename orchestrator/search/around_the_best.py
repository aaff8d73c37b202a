"""Half of a search looks where it is best already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from orchestrator.plan.axes import Space
from orchestrator.search.proposer import Proposer, Told

CENTRES = 2
"""Once every neighbour of the best cell is measured, those of the second best are looked at."""


@dataclass
class AroundTheBest:
    """search.proposer.Proposer: every second proposal is a neighbour of the best cell so far.

    All others are those of `elsewhere`, so that a better region is still found. What is measured
    changes little from one length or batch size to the next, so the best cell has good neighbours;
    an estimator that learns each axis from few cells finds that out late. Begins when `startup`
    cells are known.
    """

    elsewhere: Proposer
    space: Space
    lower_is_better: bool
    rng: Random
    startup: int
    _values: dict[int, float] = field(default_factory=dict)
    """Of feasible cells: the objective's conservative end, turned so that more is better."""
    _known: int = 0
    _turn_is_ours: bool = False

    def propose(self, left: Sequence[int], warm: frozenset[int], turn: int) -> int:
        if self._known >= self.startup:
            self._turn_is_ours = not self._turn_is_ours
            found = self._beside_the_best(left) if self._turn_is_ours else []
            if found:
                cheap = [index for index in found if index in warm]
                return self.rng.choice(cheap if cheap and turn > 1 else found)
        return self.elsewhere.propose(left, warm, turn)

    def tell(self, told: Told) -> None:
        self._known += 1
        feasible = all(value <= 0 for value in told.constraints.values())
        if told.values is not None and feasible:
            self._values[told.index] = -told.values[0] if self.lower_is_better else told.values[0]
        self.elsewhere.tell(told)

    def _beside_the_best(self, left: Sequence[int]) -> list[int]:
        there = set(left)
        best = sorted(self._values, key=lambda index: self._values[index], reverse=True)
        for centre in best[:CENTRES]:
            found = [index for index in self.space.neighbours(centre) if index in there]
            if found:
                return found
        return []
