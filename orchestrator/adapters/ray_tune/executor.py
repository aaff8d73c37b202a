"""ports.Executor on Ray Tune."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ray
from ray import tune

from orchestrator.adapters.ray_tune.pool_actor import RemotePool
from orchestrator.adapters.ray_tune.progress import ProgressCallback, WhenRecordsCannotBeWritten
from orchestrator.adapters.ray_tune.steered import SteeredScheduler, SteeredSearcher
from orchestrator.errors import StoreError
from orchestrator.plan.trial import Trial
from orchestrator.ports import Blocks, Job, OnProgress, PairProvider, PairReport, Steering
from orchestrator.records import FailureClass, Outcome
from orchestrator.run.trial import TrialRunner
from orchestrator.store import SweepFolder

_QUIET = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # our store and MLflow hold the results
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C is ours: it has engines to stop
    "RAY_AIR_NEW_OUTPUT": "0",  # the new output prints tables even at verbose=0
}

MakeRunner = Callable[[PairProvider], TrialRunner]


@dataclass(frozen=True)
class RayTuneExecutor:
    """Runs the plan's trials as Tune trials.

    `make_runner` travels to the trial's process: it must be picklable. `slots` is the number of
    device pairs, and so of trials at once. Our store decides what still has to run, so
    Tune's own snapshots are not relied upon: they lie under `storage` and may be deleted.
    """

    folder: SweepFolder
    make_runner: MakeRunner
    pool: Any
    slots: int
    storage: Path
    in_turn: bool = False

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]:
        if not jobs:
            return {}
        trials = [job.trial for job in jobs]
        by_id = {trial.id: trial for trial in trials}
        progress = ProgressCallback(by_id, self.pool, self.folder, on_progress, steering)
        trainable = tune.with_resources(
            tune.with_parameters(
                _run_in_tune,
                trials=by_id,
                blocks={job.trial.id: job.blocks for job in jobs},
                folder=self.folder,
                make_runner=self.make_runner,
                pool=RemotePool(self.pool, in_turn=self.in_turn),
            ),
            # The engines hold the devices (Serve replicas reserve them); a trial only waits and
            # sends, so it must not reserve them a second time. It runs beside the driver, where
            # the records are.
            on_the_drivers_node(),
        )
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        os.environ.setdefault("TUNE_MAX_PENDING_TRIALS_PG", str(self.slots))
        tuner = tune.Tuner(
            trainable,
            **self._walk(trials, steering, progress),
            run_config=tune.RunConfig(
                name="tune",
                storage_path=str(self.storage),
                callbacks=[progress],
                stop=WhenRecordsCannotBeWritten(progress),
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=0, fail_fast=False),
            ),
        )
        tuner.fit()
        progress.drain_engine_events()
        if progress.store_failed is not None:
            raise StoreError(progress.store_failed)
        if steering is not None:
            return dict(progress.outcomes)
        return {
            trial.id: progress.outcomes.get(trial.id)
            or Outcome(
                trial.id,
                "failed",
                FailureClass.INTERNAL,
                "Ray Tune ended without running this trial; run the same command again",
            )
            for trial in trials
        }

    def _walk(
        self, trials: Sequence[Trial], steering: Steering | None, progress: ProgressCallback
    ) -> dict[str, Any]:
        """Every trial in its order, or those that a search suggests."""
        if steering is None:
            return {
                "param_space": {"point": tune.grid_search([_point(trial) for trial in trials])},
                "tune_config": tune.TuneConfig(max_concurrent_trials=self.slots, reuse_actors=True),
            }
        scheduler = SteeredScheduler(steering)
        progress.reasons = scheduler.reasons
        return {
            "tune_config": tune.TuneConfig(
                search_alg=SteeredSearcher(steering, _point),
                scheduler=scheduler,
                num_samples=len(trials),
                max_concurrent_trials=self.slots,
                reuse_actors=True,
            )
        }


def on_the_drivers_node() -> tune.PlacementGroupFactory:
    """A trial's process claims no core, so that it fits on a head node that offers none."""
    node = ray.get_runtime_context().get_node_id()
    address = next(n["NodeManagerAddress"] for n in ray.nodes() if n["NodeID"] == node)
    return tune.PlacementGroupFactory(
        [{f"node:{address}": 0.001}], bundle_label_selector=[{"ray.io/node-id": node}]
    )


def _point(trial: Trial) -> dict[str, Any]:
    """What Tune shows of a trial; `id` is what the trainable looks up."""
    cell = trial.cell
    return {
        "id": trial.id,
        "kind": trial.kind,
        "method": cell.method,
        "draft": cell.draft,
        "speculation_length": cell.speculation_length,
        "batch_size": cell.batch_size,
        "temperature": cell.sampling.temperature,
        "workload": cell.workload.name,
    }


def _run_in_tune(
    config: dict[str, Any],
    *,
    trials: Mapping[str, Trial],
    blocks: Mapping[str, Blocks],
    folder: SweepFolder,
    make_runner: MakeRunner,
    pool: PairProvider,
) -> None:
    trial = trials[config["point"]["id"]]

    def report(pair: PairReport) -> None:
        tune.report({"report": asdict(pair), **pair.metrics})

    runner = make_runner(pool)
    try:
        outcome = runner.run(trial, blocks[trial.id], folder.trial(trial.id), report)
    except StoreError as error:
        # Not an end of this trial: it goes on once records can be written again.
        tune.report({"store_failed": str(error)})
        return
    tune.report({"outcome": asdict(outcome)})
