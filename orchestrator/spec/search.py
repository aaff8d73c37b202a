"""How the grid is walked, and which suites are run on it."""

from __future__ import annotations

from typing import Annotated

from orchestrator.spec.section import OneOf, Section

Suite = Annotated[
    str,
    OneOf(("performance",), later=("functional", "quality", "boundary", "observability", "soak")),
]


class Search(Section):
    """Every cell of the grid, each to its verdict."""

    algorithm: Annotated[str, OneOf(("grid",), later=("random", "optuna"))] = "grid"
    scheduler: Annotated[str, OneOf(("none",), later=("asha", "median"))] = "none"
