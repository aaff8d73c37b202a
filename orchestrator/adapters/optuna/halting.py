"""search.halting.Halting on Optuna's pruners: asynchronous successive halving, and the median."""

from __future__ import annotations

from typing import Literal

import optuna
from optuna.trial import TrialState

REDUCTION = 3
"""Of the cells that reach a rung, about one in three goes on to the next."""
MEDIAN_STARTUP = 5
"""Cells that have to end before any is held against their median."""


class OptunaHalting:
    """Both look at the conservative end after so many valid pairs, never at different numbers.

    asha: rungs at `least`, 3 x `least`, 9 x `least` … pairs; only the best third of what reached a
    rung goes on. median: from `least` pairs on, a cell whose best value so far is below the median
    of the others at that many pairs is stopped. Source: Li et al. 2018 (1810.05934); Golovin et al.
    2017 (Vizier).
    """

    def __init__(self, kind: Literal["asha", "median"], *, least: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._kind = kind
        pruner: optuna.pruners.BasePruner = (
            optuna.pruners.SuccessiveHalvingPruner(min_resource=least, reduction_factor=REDUCTION)
            if kind == "asha"
            else optuna.pruners.MedianPruner(n_startup_trials=MEDIAN_STARTUP, n_warmup_steps=least)
        )
        self._study = optuna.create_study(direction="maximize", pruner=pruner)
        self._running: dict[int, optuna.Trial] = {}
        self._seen: dict[int, int] = {}

    def behind(self, index: int, pairs: int, value: float) -> str | None:
        if index not in self._running:
            self._running[index] = self._study.ask()
        if self._seen.get(index, 0) >= pairs:
            return None  # the last pair was invalid: nothing new was seen
        self._seen[index] = pairs
        self._running[index].report(value, pairs)
        if not self._running[index].should_prune():
            return None
        return f"{self._kind}: behind the others after {pairs} valid pairs"

    def ended(self, index: int) -> None:
        trial = self._running.pop(index, None)
        if trial is None:
            return
        steps = trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values
        self._study.tell(trial, steps[max(steps)], state=TrialState.COMPLETE)
