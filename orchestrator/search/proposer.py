"""Proposers: of the cells that are left, which one next. The grid, and an even draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, Protocol

End = Literal["finished", "stopped", "failed"]


@dataclass(frozen=True)
class Told:
    """How a cell ended, as a proposer is told."""

    index: int
    """The cell's place among the candidates."""
    end: End
    values: tuple[float, ...] | None
    """One per objective, the conservative end; None where one is undefined."""
    constraints: Mapping[str, float]
    """Feasible where none is above 0."""
    pairs: int


class Proposer(Protocol):
    """Proposes cells by their place among the candidates. Never one that was proposed or told."""

    def propose(self, left: Sequence[int], warm: frozenset[int], turn: int) -> int:
        """One of `left`, which is not empty and ascends; `warm` needs no engine to be started.

        `turn` is how much that is worth: of so many cells that are equally good to measure, one on
        a warm engine is taken.
        """

    def tell(self, told: Told) -> None:
        """What became of a cell, whether it was proposed here or known before."""


class GridProposer:
    """In the plan's order: engines are started least often."""

    def propose(self, left: Sequence[int], warm: frozenset[int], turn: int) -> int:
        return left[0]

    def tell(self, told: Told) -> None:
        """The grid does not learn."""


class RandomProposer:
    """Every cell equally likely. Drawn `turn` at a time and walked with warm engines first.

    Which cells are drawn does not depend on what was measured or on which engines are warm, so what
    was measured by then is an even sample of the grid, give or take a handful.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._drawn: list[int] = []

    def propose(self, left: Sequence[int], warm: frozenset[int], turn: int) -> int:
        there = set(left)
        self._drawn = [index for index in self._drawn if index in there]
        if not self._drawn:
            self._drawn = self._rng.sample(left, min(turn, len(left)))
        chosen = next((index for index in self._drawn if index in warm), self._drawn[0])
        self._drawn.remove(chosen)
        return chosen

    def tell(self, told: Told) -> None:
        """An even draw does not learn."""
