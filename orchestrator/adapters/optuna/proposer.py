"""search.proposer.Proposer on Optuna's tree-structured Parzen estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from random import Random

import optuna
from optuna.trial import TrialState, create_trial

from orchestrator.adapters.optuna.tree import CellTree
from orchestrator.plan.axes import Space
from orchestrator.search.proposer import Told

STARTUP = 10
"""Cells drawn evenly before the estimator is asked."""

_STATES = {
    "finished": TrialState.COMPLETE,
    "stopped": TrialState.PRUNED,
    "failed": TrialState.FAIL,
}


class OptunaProposer:
    """One study over the cells of the plan, with one objective or several, and constraints.

    The estimator proposes a point of the tree of cells; a cell that is not left any more stands for
    the nearest one that is. Of `turn` proposals the first that needs no engine to be started is
    taken, else the first. Among equally near cells those on warm engines come first.
    """

    def __init__(
        self,
        space: Space,
        lower_is_better: Sequence[bool],
        *,
        seed: int,
        startup: int = STARTUP,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._tree = space, CellTree(space)
        with warnings.catch_warnings():
            # `group` (conditional axes) is called experimental; what it does here is tested.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                n_startup_trials=startup, multivariate=True, group=True, seed=seed
            )
        self._study = optuna.create_study(
            directions=["minimize" if lower else "maximize" for lower in lower_is_better],
            sampler=sampler,
        )
        self._lower = tuple(lower_is_better)
        self._running: dict[int, optuna.Trial] = {}
        self._rng, self._startup, self._proposed = Random(seed), startup, 0

    def propose(self, left: Sequence[int], warm: frozenset[int], turn: int) -> int:
        there = set(left)
        wanted = self._beside(left, warm, turn)
        if wanted is not None:
            self._begin(wanted)
            return wanted
        for _ in range(max(1, turn)):
            trial = self._study.ask()
            cell = self._tree.walk(trial)
            if cell in warm and cell in there:
                self._drop(trial)
                wanted = cell
                break
            wanted = cell if wanted is None else wanted
            self._drop(trial)
        assert wanted is not None
        if wanted not in there:
            at = wanted
            wanted = min(left, key=lambda i: (self._space.distance(at, i), i not in warm, i))
        self._begin(wanted)
        return wanted

    def _beside(self, left: Sequence[int], warm: frozenset[int], turn: int) -> int | None:
        """While cells are drawn evenly and starts are dear: every engine is drawn for two cells, so
        that what does not need an engine (batch size, temperature, load) is learned on the way."""
        here = [index for index in left if index in warm]
        self._proposed += 1
        if turn < 2 or self._proposed > self._startup or self._proposed % 2 or not here:
            return None
        return self._rng.choice(here)

    def tell(self, told: Told) -> None:
        trial = self._running.pop(told.index, None)
        if trial is not None:
            self._drop(trial)
        params, distributions = self._tree.params(told.index)
        state = _STATES[told.end]
        several = len(self._lower) > 1
        if state is TrialState.PRUNED and several:
            # Optuna prunes no study with several objectives. Such a cell can only have been stopped
            # by a budget: it counts with the pairs it has.
            state = TrialState.COMPLETE
        values = told.values if state is TrialState.COMPLETE else None
        steps = {}
        if state is TrialState.PRUNED and told.values is not None:
            steps = {told.pairs: told.values[0]}
        self._study.add_trial(
            create_trial(
                state=state,
                values=None if values is None else list(values),
                params=params,
                distributions=distributions,
                intermediate_values=steps,
                constraints=dict(told.constraints) if state is not TrialState.FAIL else None,
            )
        )

    def _begin(self, cell: int) -> None:
        """The estimator knows what is being measured, and keeps away from it."""
        params, _ = self._tree.params(cell)
        self._study.enqueue_trial(params)
        trial = self._study.ask()
        self._tree.walk(trial)
        self._running[cell] = trial

    def _drop(self, trial: optuna.Trial) -> None:
        self._study.tell(trial, state=TrialState.FAIL)
