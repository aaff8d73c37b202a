"""Runs one suite on one pair and records it: the record first, how it ended last."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.errors import DeploymentError, OrchestratorError, StoreError
from orchestrator.ports import Asker, Embedder, PairProvider, ServerProbe, Telemetry
from orchestrator.records import ARMS, FailureClass, Outcome
from orchestrator.run.soak.tools import SoakTools
from orchestrator.run.suites.catalogue import SUITES
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.record import SuiteRecord
from orchestrator.run.suites.subjects import LeasedSubjects
from orchestrator.run.suites.suite import Bench
from orchestrator.store.soak_keeper import SoakFiles
from orchestrator.store.suite_folder import SuiteFolder

_TRACE_LINES = 40
RAW_MB = 1e6


@dataclass(frozen=True)
class SuiteRunner:
    """Everything a suite needs of the outside world."""

    pool: PairProvider
    asker: Asker
    probe: ServerProbe
    telemetry: Telemetry
    embedder: Embedder | None = None
    soak: SoakTools | None = None
    now: Callable[[], float] = time.monotonic
    unix_s: Callable[[], float] = time.time

    def run(self, job: SuiteJob, folder: SuiteFolder, say: Callable[[str], None]) -> Outcome:
        """Run it to its end and return how it ended; a failure is an outcome.

        Raises: StoreError when records cannot be written.
        """
        began_s = self.now()
        folder.begin(job)
        subjects = LeasedSubjects(
            self.pool, job.pair, job.again, self.telemetry, holder=f"suite-{job.id}"
        )
        try:
            record = self._record(job, subjects, folder, say)
        except StoreError:
            raise
        except DeploymentError as error:
            outcome = self._outcome(
                job, began_s, FailureClass(error.failure), error.cause, error.log_tail
            )
        except OrchestratorError as error:
            outcome = self._outcome(job, began_s, FailureClass.CLIENT_FAILED, str(error))
        except Exception as error:  # noqa: BLE001 - a suite's defect ends the suite, and is told
            trace = "\n".join(traceback.format_exc().splitlines()[-_TRACE_LINES:])
            cause = f"the suite itself failed with {type(error).__name__}: {error}"
            outcome = self._outcome(job, began_s, FailureClass.INTERNAL, cause, trace)
        else:
            folder.save_record(record)
            outcome = self._outcome(job, began_s)
        finally:
            subjects.close()
        folder.save_outcome(outcome)
        return outcome

    def _record(
        self,
        job: SuiteJob,
        subjects: LeasedSubjects,
        folder: SuiteFolder,
        say: Callable[[str], None],
    ) -> SuiteRecord:
        entry = SUITES[job.suite]
        for arm in ARMS:
            subjects.endpoint(arm)  # starting an engine is not part of the suite's time
        bench = Bench(
            pair_key=job.pair.key,
            baseline=job.pair.baseline.as_dict(),
            speculative=job.pair.speculative.as_dict(),
            subjects=subjects,
            asker=self.asker,
            probe=self.probe,
            now=self.now,
            deadline_s=self.now() + entry.limit_s,
            say=say,
            seed=job.seed,
            embedder=self.embedder,
            soak=self.soak,
            keeper=SoakFiles(folder, job.id, RAW_MB * job.settings.get("raw_mb", 0.0)),
            started_unix_s=self.unix_s(),
        )
        record = entry.of(job.settings).run(bench)
        return replace(record, engines=subjects.engines)

    def _outcome(
        self,
        job: SuiteJob,
        began_s: float,
        failure: FailureClass | None = None,
        cause: str | None = None,
        log: str | None = None,
    ) -> Outcome:
        status: Literal["finished", "failed"] = "finished" if failure is None else "failed"
        return Outcome(
            job.id,
            status,
            failure,
            cause,
            log_tail=log or None,
            wall_s=self.now() - began_s,
        )
