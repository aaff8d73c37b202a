"""The adapters that run a sweep: real engines on Ray, or simulated ones in this process."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil

from orchestrator.adapters.local.suites import LocalSuites
from orchestrator.cli.preparation import Prepared, this_machine
from orchestrator.decide.ladders import LadderGate
from orchestrator.decide.trial_result import PairJudge, slo_bounds
from orchestrator.measure.slo import SloBounds
from orchestrator.models.facts import read_model_facts
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.plan.identity import content_hash
from orchestrator.ports import (
    DeviceUse,
    Job,
    OnProgress,
    PairProvider,
    ReportPair,
    Steering,
)
from orchestrator.records import Outcome
from orchestrator.run.rehearsal import Rehearsal
from orchestrator.run.soak.tools import SoakTools
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.runner import SuiteRunner
from orchestrator.run.trial import TrialRunner
from orchestrator.store import SweepFolder

if TYPE_CHECKING:
    from orchestrator.adapters.ray_cluster import AgentOf, Measuring
    from orchestrator.adapters.serve_application import Build
    from orchestrator.cli.machine_room import Joined

ENGINE_APP: Build | None = None
"""Makes the Serve application of an engine; None: vLLM's own. Tests put a light one here."""

_ENGINE_BYTES = 2.5 * 1024**3
"""A CPU engine besides its weights: two processes and 1 GiB of KV cache (measured: 2.4 GiB)."""


class Engines(Protocol):
    """An executor that has something to close."""

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]: ...

    def run_suites(self, jobs: Sequence[SuiteJob], on_progress: OnProgress) -> None: ...

    def close(self) -> None: ...


def real_engines(prepared: Prepared, folder: SweepFolder, joined: Joined | None) -> Engines:
    """vLLM behind Ray Serve, trials in Ray Tune. Nothing is started before there is work.

    `joined` is a cluster that was asked what it has; None: a Ray of our own, on this machine.
    """
    return ClusterEngines(prepared, folder, joined)


class ClusterEngines:
    """Engines on Ray's nodes. `build` makes the Serve application of an engine."""

    def __init__(
        self,
        prepared: Prepared,
        folder: SweepFolder,
        joined: Joined | None,
        build: Build | None = None,
    ) -> None:
        from orchestrator.cli.machine_room import MachineRoom

        chosen = build or ENGINE_APP
        self._prepared, self._folder = prepared, folder
        self._on_cluster = joined is not None
        self._storage: Path | None = None
        self._room = MachineRoom(
            prepared.experiment,
            folder.path / "logs",
            joined,
            # On a cluster of others, applications need names of their own.
            prefix=f"{folder.path.name}-{content_hash(str(folder.path))[:6]}-" if joined else "",
            models={
                name: model.local_path
                for name, model in prepared.models.items()
                if model.local_path is not None
            },
            **({} if chosen is None else {"build": chosen}),
        )

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
        slo = slo_bounds(self._prepared.experiment.slo)
        executor = RayTuneExecutor(
            folder=self._folder,
            make_runner=functools.partial(
                _real_runner,
                slo=slo,
                objectives=self._prepared.experiment.objectives,
                gate=_gate(self._folder, jobs),
                agents=self._room.agents,
            ),
            pool=self._room.pool,
            slots=self._room.at_once,
            in_turn=self._room.in_turn,
            storage=self._storage,
        )
        return executor.run(jobs, on_progress, steering)

    def run_suites(self, jobs: Sequence[SuiteJob], on_progress: OnProgress) -> None:
        """In this process; what is asked is sent from the engines' nodes, as in trials."""
        from orchestrator.adapters.embedding import installed_embedder
        from orchestrator.adapters.ray_cluster import NodePorts
        from orchestrator.adapters.ray_tune import RemotePool, drain_engine_events
        from orchestrator.cli.machine_room import load_cpus
        from orchestrator.cli.soaking import soak_tools

        self._open(_deployments([job.pair for job in jobs]))
        pool, ports = self._room.pool, NodePorts(_measuring(), self._room.agents)
        runner = SuiteRunner(
            pool=RemotePool(pool, in_turn=self._room.in_turn),
            asker=ports,
            probe=ports,
            telemetry=ports,
            embedder=installed_embedder(),
            soak=soak_tools(
                self._prepared,
                self._folder.path,
                ports,
                in_turn=self._room.in_turn,
                cpus=load_cpus(),
            ),
        )
        LocalSuites(
            self._folder, runner, lambda: drain_engine_events(pool, on_progress)
        ).run_suites(jobs, on_progress)

    def _open(self, coming: Sequence[Deployment]) -> None:
        if self._room.pool is not None:
            return
        # Trials run beside the driver, so what Tune keeps of them may lie there too.
        self._storage = Path(tempfile.mkdtemp(prefix="orchestrator-tune-"))
        self._room.open(coming=coming, warm_per_slot=self._warm_per_slot())

    def use(self) -> DeviceUse:
        return self._room.use()

    def _warm_per_slot(self) -> int:
        """On a CPU with cores to spare, as many engines as memory holds: an idle one takes no core,
        and starts overlap. On accelerators the two arms: a third would take memory from their KV
        caches. On two or three cores as well: starts side by side are no faster there."""
        here = this_machine()
        if here.gpus or self._on_cluster or (here.cpus or 1) < 4:
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
        self._room.close()
        if self._storage is not None:
            shutil.rmtree(self._storage, ignore_errors=True)


def _deployments(pairs: Sequence[DeploymentPair]) -> list[Deployment]:
    """Distinct deployments, in the order of first use."""
    found: dict[str, Deployment] = {}
    for pair in pairs:
        for deployment in (pair.baseline, pair.speculative):
            found.setdefault(deployment.key, deployment)
    return list(found.values())


@functools.lru_cache(maxsize=1)
def _measuring() -> Measuring:
    """One per process: a trial's process lives through many trials, and so does its client."""
    from orchestrator.cli.machine_room import measuring

    return measuring()


def _gate(folder: SweepFolder, jobs: Sequence[Job]) -> LadderGate:
    """Knows the rungs below: those of this run, and those that ended before."""
    known = {trial.id: trial for trial in folder.trials()}
    known |= {job.trial.id: job.trial for job in jobs}
    return LadderGate.over(folder, known.values())


def _real_runner(
    pool: PairProvider,
    *,
    slo: SloBounds,
    objectives: Sequence[str],
    gate: LadderGate,
    agents: dict[str, AgentOf],
) -> TrialRunner:
    from orchestrator.adapters.ray_cluster import NodePorts

    ports = NodePorts(_measuring(), agents)
    return TrialRunner(
        pool=pool,
        client=ports,
        probe=ports,
        telemetry=ports,
        judge=PairJudge(slo, objectives),
        gate=gate,
        rehearsal=Rehearsal(ports),
    )


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
        self._prepared, self._folder, self._world = prepared, folder, world
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
        from orchestrator.adapters.simulated.stream import SimulatedSoak

        world = self._world
        soaking, requests = SimulatedSoak(world), self._prepared.soak_requests()
        runner = SuiteRunner(
            pool=self._pool,
            asker=SimulatedAsker(world),
            probe=self._runner.probe,
            telemetry=self._runner.telemetry,
            embedder=BagOfWordsEmbedder(),
            soak=None
            if requests is None
            else SoakTools(
                open_stream=soaking.open,
                requests=requests,
                telemetry=self._runner.telemetry,
                faults=lambda: soaking,
                timeouts=self._prepared.timeouts(),
            ),
            now=lambda: world.now_s,
            unix_s=lambda: world.unix_s,
        )
        LocalSuites(self._folder, runner).run_suites(jobs, on_progress)

    def close(self) -> None:
        self._pool.close()
