"""How the grid is walked, and which suites are run on it."""

from __future__ import annotations

from typing import Annotated

from orchestrator.spec.section import OneOf, Section

PERFORMANCE = "performance"
"""The trials themselves; without it only the other suites are run."""

SUITE_NAMES = OneOf(
    (
        PERFORMANCE,
        "functional",
        "quality",
        "losslessness",
        "boundary",
        "isolation",
        "observability",
    ),
    later=("soak",),
)
Suite = Annotated[str, SUITE_NAMES]


class Search(Section):
    """Every cell of the grid, each to its verdict."""

    algorithm: Annotated[str, OneOf(("grid",), later=("random", "optuna"))] = "grid"
    scheduler: Annotated[str, OneOf(("none",), later=("asha", "median"))] = "none"
