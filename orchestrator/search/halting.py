"""Whether a cell that is being measured has fallen behind."""

from __future__ import annotations

from typing import Protocol


class Halting(Protocol):
    """Looks at a cell after every pair. Cells are named by their place among the candidates."""

    def behind(self, index: int, pairs: int, value: float) -> str | None:
        """Why the cell is not worth going on with after so many valid pairs; None: go on.

        `value` is the objective's conservative end, turned so that more is better.
        """

    def ended(self, index: int) -> None:
        """The cell is not measured any more; what it showed still counts for the others."""


class NeverHalting:
    """Every cell to its verdict."""

    def behind(self, index: int, pairs: int, value: float) -> str | None:
        return None

    def ended(self, index: int) -> None:
        """Nothing is kept."""
