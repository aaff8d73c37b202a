"""The adapters of a sweep over servers that already run; trials in this process, without Ray."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.adapters.attached.access import Access, access_from
from orchestrator.adapters.attached.deployer import AttachedDeployer
from orchestrator.adapters.attached.redacted import RedactedAsker, RedactedClient, redacted
from orchestrator.adapters.attached.survey import Survey, survey
from orchestrator.adapters.attached.telemetry import AttachedTelemetry
from orchestrator.adapters.embedding import installed_embedder
from orchestrator.adapters.http.asker import HttpAsker
from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.http.prometheus import PrometheusProbe
from orchestrator.adapters.local.executor import LocalExecutor
from orchestrator.adapters.local.suites import LocalSuites
from orchestrator.cli.preparation import Prepared
from orchestrator.cli.soaking import soak_tools
from orchestrator.decide.trial_result import PairJudge, slo_bounds
from orchestrator.plan.block import Timeouts
from orchestrator.plan.trial import Trial
from orchestrator.ports import Job, LoadClient, OnProgress, Progress, ReportPair, Steering
from orchestrator.records import Outcome
from orchestrator.run.pool import Pool
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.runner import SuiteRunner
from orchestrator.run.trial import TrialRunner
from orchestrator.store import SweepFolder


class AttachedEngines:
    """Implements cli.running.Engines. Nothing is started but the load generator's process."""

    def __init__(
        self,
        prepared: Prepared,
        folder: SweepFolder,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        section = prepared.experiment.attach
        assert section is not None
        self._prepared, self._folder = prepared, folder
        self._section, self._environment = section, environment
        self._access: Access | None = None
        self._survey: Survey | None = None
        self._client: LoadClient | None = None
        self._pool: Pool | None = None

    @property
    def access(self) -> Access:
        """Read when it is needed: to report on a finished sweep takes no key."""
        if self._access is None:
            self._access = access_from(self._section, self._environment)
        return self._access

    def masked(self, value: Any) -> Any:
        """`value` without the key, also where the key could not be used."""
        name = self._section.api_key_env
        return Access(secret=self._environment.get(name) if name else None).masked(value)

    def survey(self) -> Survey:
        """Both servers, asked once. Raises: DeploymentError."""
        if self._survey is None:
            measure = self._prepared.experiment.measure
            limits = measure.timeouts
            trials = self._prepared.plan.trials
            self._survey = survey(
                self._deployer(),
                self.access,
                _comparison(trials).pair,
                trials,
                timeout_s=limits.start_s,
                timeouts=Timeouts(
                    limits.connect_s, limits.first_token_s, limits.stall_s, limits.total_s
                ),
            )
        return self._survey

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]:
        if not jobs:
            return {}
        found = self.survey()
        for note in found.notes:
            on_progress(Progress("engine_ready", text=note))
        runner = self._runner(found)

        def run_job(job: Job, report: ReportPair) -> Outcome:
            return runner.run(job.trial, job.blocks, self._folder.trial(job.trial.id), report)

        return LocalExecutor(run_job).run(jobs, on_progress, steering)

    def run_suites(self, jobs: Sequence[SuiteJob], on_progress: OnProgress) -> None:
        found = self.survey()
        runner, access = self._runner(found), self.access
        LocalSuites(
            self._folder,
            SuiteRunner(
                pool=runner.pool,
                asker=RedactedAsker(HttpAsker(tls=access.tls), access),
                probe=runner.probe,
                telemetry=runner.telemetry,
                embedder=installed_embedder(),
                soak=soak_tools(
                    self._prepared,
                    self._folder.path,
                    runner.telemetry,
                    can_restart=False,
                    usage=found.counting.usage,
                    tls=access.tls,
                    redact=lambda record: redacted(record, access),
                ),
            ),
        ).run_suites(jobs, on_progress)

    def close(self) -> None:
        """Ends the load generator's process. The servers go on. May be called twice."""
        if self._client is not None:
            self._client.close()
        if self._pool is not None:
            self._pool.close()
        self._client = self._pool = None

    def _runner(self, found: Survey) -> TrialRunner:
        access = self.access
        if self._client is None or self._pool is None:
            sending = HttpLoadClient(
                workers=1,
                usage=found.counting.usage,
                tls_ca_file=access.tls.ca_file,
                tls_verify=access.tls.verify,
            )
            self._client = RedactedClient(sending, access)
            start_s = self._prepared.experiment.measure.timeouts.start_s
            self._pool = Pool(self._deployer(), start_timeout_s=start_s)
        return TrialRunner(
            pool=self._pool,
            client=self._client,
            probe=PrometheusProbe(tls=access.tls),
            telemetry=AttachedTelemetry(),
            judge=PairJudge(
                slo_bounds(self._prepared.experiment.slo), self._prepared.experiment.objectives
            ),
        )

    def _deployer(self) -> AttachedDeployer:
        return AttachedDeployer(
            self.access, model=self._section.model, target=self._prepared.experiment.target
        )


def attached_manifest(
    manifest: Mapping[str, Any], engines: AttachedEngines, *, earlier: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The manifest with what the servers said of themselves, and without the key.

    `earlier` is the manifest of a sweep in which nothing is left to do: its servers may be gone,
    and what they said then is kept.
    """
    if earlier is not None:
        found = dict(earlier.get("attached") or {})
    else:
        seen = engines.survey()
        found = {
            "usage": seen.counting.usage,
            "simulated": seen.simulated,
            "notes": list(seen.notes),
        }
    masked: dict[str, Any] = engines.masked(manifest)
    return {
        **masked,
        "attached": found,
        "simulated": bool(manifest["simulated"] or found.get("simulated")),
        "notices": [*masked["notices"], *(f"attached: {note}" for note in found.get("notes", ()))],
    }


def _comparison(trials: Sequence[Trial]) -> Trial:
    return next(trial for trial in trials if trial.kind == "comparison")
