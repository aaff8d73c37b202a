"""How the cells are walked, what is looked for, and which suites are run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from orchestrator.spec.goals import SLO_METRICS, SLO_STATISTICS
from orchestrator.spec.measure import METRICS
from orchestrator.spec.nearest import nearest
from orchestrator.spec.section import (
    Axis,
    Count,
    Mapped,
    OneOf,
    Positive,
    Section,
    broken,
)

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
        "soak",
    )
)
Suite = Annotated[str, SUITE_NAMES]

ALGORITHMS = ("grid", "random", "optuna")
SCHEDULERS = ("none", "asha", "median")

OF_THE_SLO = ("goodput_rps", "slo_attainment")
MAXIMISED = (*METRICS, "output_tok_per_s", *OF_THE_SLO)
"""Objectives of which more is better; the speedups compare the arms, the others are figures of the
speculative arm."""
LATENCIES = tuple(f"{m}_{s}_s" for m in SLO_METRICS for s in SLO_STATISTICS)
"""Objectives of which less is better, of the speculative arm."""


def lower_is_better(objective: str) -> bool:
    return objective in LATENCIES


PRESETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "best-speedup": (
        "which way to speculate gains most throughput over the baseline?",
        {"algorithm": "optuna", "scheduler": "asha", "objective": ["speedup_throughput"]},
    ),
    "lowest-latency": (
        "which one gains most time per output token?",
        {"algorithm": "optuna", "scheduler": "asha", "objective": ["speedup_tpot"]},
    ),
    "within-slo": (
        "which one serves most requests within the service objectives (needs slo)?",
        {"algorithm": "optuna", "scheduler": "none", "objective": ["goodput_rps"]},
    ),
    "throughput-against-latency": (
        "what does throughput cost in time per output token (a Pareto front)?",
        {
            "algorithm": "optuna",
            "scheduler": "none",
            "objective": ["output_tok_per_s", "tpot_mean_s"],
        },
    ),
    "first-look": (
        "is there anything to gain at all (twelve cells, drawn evenly)?",
        {"algorithm": "random", "scheduler": "median", "trials": 12},
    ),
    "whole-grid-cheaply": (
        "every cell, but clear losers are stopped early",
        {"algorithm": "grid", "scheduler": "asha"},
    ),
}
"""By name: the question in words, and the keys of `search` that it stands for."""


def objective_name(name: str) -> str:
    """Raises the rule's error unless `name` is one of the objectives."""
    if name in MAXIMISED or name in LATENCIES:
        return name
    close = nearest(name, (*MAXIMISED, *LATENCIES))
    raise broken(
        f"must be one of {', '.join(MAXIMISED)}, or a latency <metric>_<statistic>_s "
        f"(metric {', '.join(SLO_METRICS)}; statistic {', '.join(SLO_STATISTICS)})",
        value=f"'{name}'",
        hint=f"did you mean '{close}'?" if close else None,
    )


Objective = Annotated[str, AfterValidator(objective_name)]


class Search(Section):
    """Which cells are measured, in which order, and when it is enough."""

    preset: Annotated[str, OneOf(tuple(PRESETS))] | None = Field(
        default=None, description="a common question; keys given beside it win over the preset's"
    )
    algorithm: Annotated[str, OneOf(ALGORITHMS)] = Field(
        default="grid", description="grid: every cell; random; optuna: tree-structured Parzen"
    )
    scheduler: Annotated[str, OneOf(SCHEDULERS)] = Field(
        default="none", description="stops cells that fall behind, after every pair"
    )
    objective: Axis[Objective] | None = Field(
        default=None,
        description="what is looked for; several give a Pareto front (default: measure.metric)",
    )
    trials: Count | None = Field(default=None, description="at most so many cells are begun")
    minutes: Positive | None = Field(
        default=None, description="time in trials, engine starts included, over the device pairs"
    )
    device_hours: Positive | None = Field(
        default=None, description="the same time multiplied by the devices that a pair holds"
    )
    first: tuple[Mapped, ...] = Field(
        default=(),
        description="cells to try first, by some of their values: {method: ngram, batch_size: 1}",
    )

    @property
    def budgeted(self) -> bool:
        return not (self.trials is None and self.minutes is None and self.device_hours is None)

    @property
    def steered(self) -> bool:
        """Whether anything but the whole grid in its own order is asked for."""
        plain = self.algorithm == "grid" and self.scheduler == "none"
        several = len(self.objective or ()) > 1
        return not plain or self.budgeted or several or bool(self.first)

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("preset"), str):
            return given
        name = given["preset"]
        return {**PRESETS[name][1], **given} if name in PRESETS else given

    @model_validator(mode="after")
    def _grid_is_whole(self) -> Search:
        if self.algorithm == "grid" and self.trials is not None:
            raise broken(
                "acts only with algorithm: random or optuna; the grid's first cells are no sample",
                value=self.trials,
                hint="algorithm: random draws that many cells evenly",
                key=("trials",),
                involves=[("algorithm",), ("preset",)],
            )
        if self.algorithm != "grid" and not self.budgeted:
            raise broken(
                f"needs a budget: without one, {self.algorithm} measures every cell",
                value=f"'{self.algorithm}'",
                hint="give trials, minutes or device_hours",
                key=("algorithm",),
                involves=[("trials",), ("minutes",), ("device_hours",), ("preset",)],
            )
        return self

    @model_validator(mode="after")
    def _objectives_apart(self) -> Search:
        names = self.objective or ()
        if len(set(names)) < len(names):
            raise broken("must not name an objective twice", value=list(names), key=("objective",))
        if len(names) > 1 and self.scheduler != "none":
            raise broken(
                "needs one objective: a cell that is behind in one may lead in another",
                value=f"'{self.scheduler}'",
                hint="scheduler: none, or one objective",
                key=("scheduler",),
                involves=[("objective",), ("preset",)],
            )
        return self
