"""The adapters that run a sweep: real engines on Ray, or simulated ones in this process."""

from __future__ import annotations

import contextlib
import functools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import psutil

from orchestrator.adapters.local.suites import LocalSuites
from orchestrator.cli.preparation import Prepared, this_machine
from orchestrator.decide.ladders import LadderGate
from orchestrator.decide.trial_result import PairJudge, slo_bounds
from orchestrator.measure.slo import SloBounds
from orchestrator.models.facts import read_model_facts
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.ports import (
    Deployer,
    Job,
    OnProgress,
    PairProvider,
    ReportPair,
    Steering,
    Telemetry,
)
from orchestrator.records import Outcome
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.runner import SuiteRunner
from orchestrator.run.trial import TrialRunner
from orchestrator.store import SweepFolder

_ENGINE_BYTES = 2.5 * 1024**3
"""A CPU engine besides its weights: two processes and 1 GiB of KV cache (measured: 2.4 GiB)."""
_CLOSE_S = 8.0
"""For the engines to end by themselves; then Ray, if it was started here, takes them along."""


class Engines(Protocol):
    """An executor that has something to close."""

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]: ...

    def run_suites(self, jobs: Sequence[SuiteJob], on_progress: OnProgress) -> None: ...

    def close(self) -> None: ...


def real_engines(prepared: Prepared, folder: SweepFolder, address: str | None) -> Engines:
    """vLLM behind Ray Serve, trials in Ray Tune. Nothing is started before there is work."""
    return _RealEngines(prepared, folder, address)


class _RealEngines:
    def __init__(self, prepared: Prepared, folder: SweepFolder, address: str | None) -> None:
        self._prepared, self._folder, self._address = prepared, folder, address
        self._connection: Any = None
        self._serve_started = False
        self._pool: Any = None
        self._storage: Path | None = None

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]:
        if not jobs:
            return {}
        from orchestrator.adapters.ray_tune import RayTuneExecutor

        # A search may never ask for the plan's next engines: they are not started along.
        pairs = [job.trial.pair for job in jobs]
        self._open(_deployments(pairs) if steering is None else [])
        assert self._storage is not None
        slots = self._prepared.plan.estimate.pairs_at_once
        slo = slo_bounds(self._prepared.experiment.slo)
        executor = RayTuneExecutor(
            folder=self._folder,
            make_runner=functools.partial(
                _real_runner,
                slo=slo,
                objectives=self._prepared.experiment.objectives,
                gate=_gate(self._folder, jobs),
            ),
            pool=self._pool,
            slots=slots,
            storage=self._storage,
        )
        return executor.run(jobs, on_progress, steering)

    def run_suites(self, jobs: Sequence[SuiteJob], on_progress: OnProgress) -> None:
        """In this process: the engines answer here as they do to trials."""
        from orchestrator.adapters.embedding import installed_embedder
        from orchestrator.adapters.http.asker import HttpAsker
        from orchestrator.adapters.http.prometheus import PrometheusProbe
        from orchestrator.adapters.ray_local import ray_processes
        from orchestrator.adapters.ray_tune import RemotePool, drain_engine_events

        self._open(_deployments([job.pair for job in jobs]))
        pool = self._pool
        runner = SuiteRunner(
            pool=RemotePool(pool),
            asker=HttpAsker(),
            probe=PrometheusProbe(),
            telemetry=_telemetry(ray_processes),
            embedder=installed_embedder(),
        )
        LocalSuites(
            self._folder, runner, lambda: drain_engine_events(pool, on_progress)
        ).run_suites(jobs, on_progress)

    def _open(self, coming: Sequence[Deployment]) -> None:
        if self._pool is not None:
            return
        from orchestrator.adapters.ray_local import ensure_ray, ensure_serve
        from orchestrator.adapters.ray_tune import start_pool

        logs = self._folder.path / "logs"
        self._storage = Path(tempfile.mkdtemp(prefix="orchestrator-tune-"))
        self._connection = ensure_ray(self._address)
        self._serve_started = ensure_serve().started_here
        make_deployer = functools.partial(_real_deployer, logs)
        self._pool = start_pool(
            make_deployer,
            slots=self._prepared.plan.estimate.pairs_at_once,
            start_timeout_s=self._prepared.experiment.measure.timeouts.start_s,
            warm_per_slot=self._warm_per_slot(),
            coming=coming,
        )

    def _warm_per_slot(self) -> int:
        """On a CPU with cores to spare, as many engines as memory holds: an idle one takes no core,
        and starts overlap. On accelerators the two arms: a third would take memory from their KV
        caches. On two or three cores as well: starts side by side are no faster there."""
        here = this_machine()
        if here.gpus or self._address is not None or (here.cpus or 1) < 4:
            return 2
        free = psutil.virtual_memory().available
        weights = sum(
            facts.parameter_bytes or 0
            for model in self._prepared.models.values()
            if model.local_path is not None
            for facts in [read_model_facts(model.local_path, with_vocabulary=False)]
        )
        return max(2, int(0.6 * free / (_ENGINE_BYTES + 2 * weights)))

    def close(self) -> None:
        """Stop engines, Serve and Ray as far as they were started here. May be called twice."""
        if self._connection is None:
            return
        import ray
        from ray import serve

        connection, self._connection = self._connection, None
        pool, self._pool = self._pool, None
        try:
            if pool is not None:
                # A pool that does not answer is no reason to leave Ray running.
                with contextlib.suppress(ray.exceptions.GetTimeoutError, ray.exceptions.RayError):
                    ray.get(pool.close.remote(), timeout=_CLOSE_S)
                ray.kill(pool)
            if self._serve_started and not connection.started_here:
                serve.shutdown()
        finally:
            connection.close()
            if self._storage is not None:
                shutil.rmtree(self._storage, ignore_errors=True)


def _deployments(pairs: Sequence[DeploymentPair]) -> list[Deployment]:
    """Distinct deployments, in the order of first use."""
    found: dict[str, Deployment] = {}
    for pair in pairs:
        for deployment in (pair.baseline, pair.speculative):
            found.setdefault(deployment.key, deployment)
    return list(found.values())


def _real_deployer(logs: Path) -> Deployer:
    from orchestrator.adapters.ray_serve import RayServeDeployer

    return RayServeDeployer(logs)


@functools.lru_cache(maxsize=1)
def _client() -> Any:
    """One per process: a trial's process lives through many trials, and so does its client."""
    from orchestrator.adapters.http.client import HttpLoadClient

    return HttpLoadClient(workers=1)


def _gate(folder: SweepFolder, jobs: Sequence[Job]) -> LadderGate:
    """Knows the rungs below: those of this run, and those that ended before."""
    known = {trial.id: trial for trial in folder.trials()}
    known |= {job.trial.id: job.trial for job in jobs}
    return LadderGate.over(folder, known.values())


def _real_runner(
    pool: PairProvider, *, slo: SloBounds, objectives: Sequence[str], gate: LadderGate
) -> TrialRunner:
    from orchestrator.adapters.http.prometheus import PrometheusProbe
    from orchestrator.adapters.ray_local import ray_processes

    return TrialRunner(
        pool=pool,
        client=_client(),
        probe=PrometheusProbe(),
        telemetry=_telemetry(ray_processes),
        judge=PairJudge(slo, objectives),
        gate=gate,
    )


def _telemetry(alongside: Callable[[], Iterable[int]]) -> Telemetry:
    from orchestrator.adapters.local.combined_telemetry import CombinedTelemetry
    from orchestrator.adapters.local.telemetry import HostTelemetry
    from orchestrator.adapters.nvml import NvmlTelemetry, nvml_or_none

    nvml = nvml_or_none()
    host = HostTelemetry(alongside=alongside)
    return host if nvml is None else CombinedTelemetry(host, NvmlTelemetry(nvml))


def simulated_engines(prepared: Prepared, folder: SweepFolder) -> Engines:
    """The simulated machine room on virtual time, in this process. Labelled so everywhere."""
    return _SimulatedEngines(prepared, folder)


class _SimulatedEngines:
    def __init__(self, prepared: Prepared, folder: SweepFolder) -> None:
        from orchestrator.adapters.simulated.in_process import (
            SimulatedDeployer,
            SimulatedProbe,
            SimulatedTelemetry,
        )
        from orchestrator.adapters.simulated.load_client import SimulatedLoadClient
        from orchestrator.adapters.simulated.world import SimulatedWorld
        from orchestrator.run.pool import Pool

        world = SimulatedWorld(prepared.experiment.seed)
        self._folder, self._world = folder, world
        self._pool = Pool(SimulatedDeployer(world))
        self._runner = TrialRunner(
            pool=self._pool,
            client=SimulatedLoadClient(world),
            probe=SimulatedProbe(world),
            telemetry=SimulatedTelemetry(world),
            judge=PairJudge(slo_bounds(prepared.experiment.slo), prepared.experiment.objectives),
            monotonic=self._now,
        )

    def _now(self) -> float:
        """Virtual seconds: what a trial takes, and what a search's budget counts."""
        return self._world.now_s

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]:
        from orchestrator.adapters.local.executor import LocalExecutor

        self._runner.gate = _gate(self._folder, jobs)

        def run_job(job: Job, report: ReportPair) -> Outcome:
            folder = self._folder.trial(job.trial.id)
            return self._runner.run(job.trial, job.blocks, folder, report)

        return LocalExecutor(run_job, self._now).run(jobs, on_progress, steering)

    def run_suites(self, jobs: Sequence[SuiteJob], on_progress: OnProgress) -> None:
        from orchestrator.adapters.simulated.asker import SimulatedAsker
        from orchestrator.adapters.simulated.embedder import BagOfWordsEmbedder

        world = self._world
        runner = SuiteRunner(
            pool=self._pool,
            asker=SimulatedAsker(world),
            probe=self._runner.probe,
            telemetry=self._runner.telemetry,
            embedder=BagOfWordsEmbedder(),
            now=lambda: world.now_s,
            unix_s=lambda: world.unix_s,
        )
        LocalSuites(self._folder, runner).run_suites(jobs, on_progress)

    def close(self) -> None:
        self._pool.close()
