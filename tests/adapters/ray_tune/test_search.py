"""A search with Optuna and ASHA through the real Tuner, on simulated engines."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.ports import Job, OnProgress, PairProvider, Steering
from orchestrator.records import Outcome
from orchestrator.run.slots import SlotDevices
from orchestrator.run.trial import TrialRunner
from orchestrator.store import SweepFolder
from orchestrator.sweep import run_sweep
from tests.sweep.world import Events, sweep_of, write_experiment

pytestmark = pytest.mark.ray

SEARCH = "search: {algorithm: optuna, scheduler: asha, trials: 8}"


def simulated_slots() -> Sequence[SlotDevices]:
    from orchestrator.adapters.simulated.in_process import SimulatedDeployer
    from orchestrator.adapters.simulated.world import SimulatedWorld

    return (SlotDevices((SimulatedDeployer(SimulatedWorld(3)),)),)


def simulated_runner(pool: PairProvider, *, objectives: Sequence[str]) -> TrialRunner:
    """Every trial's process builds the engines that the pool leased anew, from their recipes."""
    from orchestrator.adapters.simulated.in_process import SimulatedProbe, SimulatedTelemetry
    from orchestrator.adapters.simulated.load_client import SimulatedLoadClient
    from orchestrator.adapters.simulated.world import SimulatedWorld
    from orchestrator.decide.trial_result import PairJudge

    world = SimulatedWorld(3)
    return TrialRunner(
        pool=pool,
        client=SimulatedLoadClient(world),
        probe=SimulatedProbe(world),
        telemetry=SimulatedTelemetry(world),
        judge=PairJudge(None, objectives),
    )


class TunedEngines:
    """Simulated engines behind the real pool actor, walked by the real Tuner."""

    def __init__(self, folder: SweepFolder, storage: Path) -> None:
        self._folder, self._storage = folder, storage
        self.starts = 0
        self.leases_left = -1

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]:
        if not jobs:
            return {}
        import ray

        from orchestrator.adapters.ray_tune import RayTuneExecutor, start_pool

        pool = start_pool(simulated_slots, slots=1)
        try:
            executor = RayTuneExecutor(
                folder=self._folder,
                make_runner=functools.partial(simulated_runner, objectives=("speedup_throughput",)),
                pool=pool,
                slots=1,
                storage=self._storage,
            )
            outcomes = executor.run(jobs, on_progress, steering)
            self.starts += ray.get(pool.counts.remote()).engine_starts
            # A slot that a stopped trial had kept would make this wait for ever.
            first = jobs[0].trial.pair
            lease = ray.get(pool.lease.remote(first, "test"), timeout=60)
            ray.get(pool.release.remote(lease, ()))
            return outcomes
        finally:
            ray.kill(pool)

    def close(self) -> None:
        """The pool goes with each run."""


@pytest.fixture(scope="module")
def ray_here() -> Iterator[None]:
    from orchestrator.adapters.ray_local import ensure_ray

    connection = ensure_ray()
    yield
    connection.close()


def test_optuna_and_asha_walk_the_plan_through_tune(tmp_path: Path, ray_here: None) -> None:
    file = write_experiment(
        tmp_path,
        lengths="[1, 2, 3, 4, 5, 6]",
        simulated="{profile: fast, acceptance: 0.8, slow_jitter_sigma: 0.02}",
        more=SEARCH,
    )
    events = Events()
    folder = SweepFolder(tmp_path / "r" / "story")
    engines = TunedEngines(folder, tmp_path / "tune")
    sweep, _ = sweep_of(file, tmp_path / "r", on_progress=events, executor=engines)
    finished = run_sweep(sweep)

    outcomes = {t.trial.id: t.outcome for t in finished.result.trials}
    assert len(outcomes) == 8
    assert finished.result.search is not None
    assert finished.result.search.over == "8 trials were begun"
    ends = [outcome.status for outcome in outcomes.values() if outcome is not None]
    assert set(ends) == {"finished", "stopped"}
    for trial in finished.result.trials:
        assert trial.outcome is not None
        if trial.outcome.status == "stopped":
            assert str(trial.outcome.cause).startswith("asha: behind the others")
            assert trial.outcome.pairs_measured == len(trial.pairs) >= 2
            assert (trial.outcome.wall_s or 0) > 0
    assert all(control.outcome is not None for control in finished.result.controls)
    started = [e.trial.id for e in events.seen if e.kind == "trial_started" and e.trial]
    assert len(started) == len(set(started))

    quiet = Events()
    again, _ = sweep_of(file, tmp_path / "r", on_progress=quiet, executor=engines)
    run_sweep(again)
    assert "trial_started" not in quiet.kinds()
