"""From a plan's search to one at work: its proposer, its rule for stopping, what is known."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from orchestrator.cli.preparation import Prepared
from orchestrator.decide.derived import trial_result
from orchestrator.decide.objective import Scores, scores
from orchestrator.decide.trial_result import TrialResult, slo_bounds
from orchestrator.plan.axes import Space
from orchestrator.plan.plan import Plan, SearchPlan
from orchestrator.plan.prompts import derived_seed
from orchestrator.plan.search import start_over_trial
from orchestrator.plan.trial import Trial
from orchestrator.search.around_the_best import AroundTheBest
from orchestrator.search.budget import Budget
from orchestrator.search.halting import Halting, NeverHalting
from orchestrator.search.proposer import GridProposer, Proposer, RandomProposer
from orchestrator.search.starts import Starts
from orchestrator.search.steering import Known, Steering
from orchestrator.spec.search import lower_is_better
from orchestrator.store import SweepFolder
from orchestrator.sweep import Steer


def steer(prepared: Prepared, folder: SweepFolder) -> Steer | None:
    """None where the file asks for the plain grid."""
    search = prepared.plan.search
    if search is None:
        return None

    def begin(todo: Sequence[Trial]) -> Steering:
        return steering(prepared, search, folder, todo)

    return begin


def steering(
    prepared: Prepared, search: SearchPlan, folder: SweepFolder, todo: Sequence[Trial]
) -> Steering:
    """The search, told what this sweep's folder holds. Raises: StoreError for damaged records."""
    plan = prepared.plan
    slo = slo_bounds(prepared.experiment.slo)
    candidates = [trial for trial in plan.trials if trial.kind == "comparison"]

    def scores_of(trial: Trial) -> Scores:
        return _scores(search, trial_result(trial, folder.trial(trial.id), slo))

    left = {trial.id for trial in todo}
    known = []
    for trial in candidates:
        if trial.id in left:
            continue
        result = trial_result(trial, folder.trial(trial.id), slo)
        if result.outcome is not None:
            history = _history(search, result) if search.scheduler != "none" else ()
            reused = folder.trial(trial.id).reused() is not None
            known.append(Known(trial, result.outcome, _scores(search, result), history, reused))
    estimate = plan.estimate
    return Steering(
        candidates=candidates,
        todo=todo,
        known=known,
        objectives=search.objectives,
        proposer=_proposer(plan, search, candidates),
        scores_of=scores_of,
        halting=_halting(search, candidates),
        budget=Budget(
            trials=search.trials,
            minutes=search.minutes,
            device_hours=search.device_hours,
            devices_per_pair=estimate.devices_per_pair,
            pairs_at_once=estimate.pairs_at_once,
        ),
        starts=Starts(start_over_trial(estimate, len(plan.trials), plan.engine_starts)),
        first=search.first,
        spared=frozenset(trial_id for trial_id in left if folder.trial(trial_id).outcome()),
    )


def _proposer(plan: Plan, search: SearchPlan, candidates: Sequence[Trial]) -> Proposer:
    if search.algorithm == "grid":
        return GridProposer()
    seed = derived_seed(plan.seed, "search", search.algorithm)
    if search.algorithm == "random":
        return RandomProposer(Random(seed))
    from orchestrator.adapters.optuna import STARTUP, OptunaProposer

    space, lower = Space.of(candidates), [lower_is_better(name) for name in search.objectives]
    estimator = OptunaProposer(space, lower, seed=seed % 2**32)
    if len(lower) > 1:
        return estimator  # there is no best cell, but a front
    return AroundTheBest(estimator, space, lower[0], Random(seed), STARTUP)


def _halting(search: SearchPlan, candidates: Sequence[Trial]) -> Halting:
    if search.scheduler == "none" or not candidates:
        return NeverHalting()
    from orchestrator.adapters.optuna import OptunaHalting

    least = min(2, candidates[0].protocol.pairs_min)
    return OptunaHalting("asha" if search.scheduler == "asha" else "median", least=least)


def _scores(search: SearchPlan, result: TrialResult) -> Scores:
    return scores(result.pairs, result.trial.protocol, search.objectives, search.constraints)


def _history(search: SearchPlan, result: TrialResult) -> tuple[tuple[int, float], ...]:
    """What the trial showed after each pair that counted, as its reports carried it then."""
    seen = []
    objective = search.objectives[0]
    for pairs in range(1, len(result.valid_pairs) + 1):
        found = scores(result.valid_pairs[:pairs], result.trial.protocol, (objective,), {})
        if objective in found.objectives:
            seen.append((pairs, found.objectives[objective].conservative))
    return tuple(seen)
