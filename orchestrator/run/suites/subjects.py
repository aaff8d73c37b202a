"""The engines under test, leased from the pool like a trial's: `suite.Subjects`."""

from __future__ import annotations

import os
import time
from pathlib import Path

from orchestrator.errors import DeploymentError
from orchestrator.plan.arms import ATTACHED
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.ports import Endpoint, Lease, PairProvider, Telemetry
from orchestrator.records import Arm, FailureClass
from orchestrator.run.suites.record import Subject

_LOG_BYTES = 200_000
_READING_S = (0.1, 0.5)
"""Telemetry reads what happens over a while: stopped at once it has no sample, on a busy machine
not after a moment either."""


class LeasedSubjects:
    """Holds one lease at a time: of the two arms, or of the baseline and the baseline relaunched.

    The pool warms two engines at least, so a third may have to be started in another's place; it
    is leased when it is first asked for.
    """

    def __init__(
        self,
        pool: PairProvider,
        pair: DeploymentPair,
        again: Deployment | None,
        telemetry: Telemetry,
        *,
        holder: str,
    ) -> None:
        self._pool, self._telemetry, self._holder = pool, telemetry, holder
        self._pair = pair
        self._floor = None if again is None else DeploymentPair(pair.baseline, again)
        self._attached = ATTACHED in pair.speculative.engine
        self._held: tuple[DeploymentPair, Lease] | None = None
        self._engines: dict[tuple[str, str | None], None] = {}

    @property
    def available(self) -> tuple[Subject, ...]:
        arms: tuple[Subject, ...] = ("baseline", "speculative")
        return arms if self._floor is None else (*arms, "baseline_again")

    @property
    def notes(self) -> tuple[str, ...]:
        if not self._attached:
            return ()
        return (
            "these servers were started by somebody else: one that dies is not started again, and "
            "`baseline_again` is the same server asked once more",
        )

    @property
    def engines(self) -> tuple[tuple[str, str | None], ...]:
        """Name and version of every engine that was held so far, each once."""
        return tuple(self._engines)

    def endpoint(self, subject: Subject) -> Endpoint:
        return self._pool.activate(self._lease(subject), _arm(subject)).endpoint

    def healthy(self, subject: Subject) -> bool:
        return _arm(subject) not in self._pool.broken_arms(self._lease(subject))

    def restart(self, subject: Subject) -> Endpoint:
        if self._attached:
            raise DeploymentError(
                FailureClass.CRASHED,
                f"the attached {subject} server ({self.endpoint(subject).base_url}) no longer "
                "answers, and it cannot be started from here; start it and run the command again",
            )
        lease = self._lease(subject)
        self._held = None
        self._pool.release(lease, broken=[_arm(subject)])
        return self.endpoint(subject)

    def rss_bytes(self, subject: Subject) -> float | None:
        """Undefined: None where the engine's processes cannot be seen from here."""
        endpoint = self.endpoint(subject)
        for wait_s in (0.0, *_READING_S):
            reading = self._telemetry.start(endpoint)
            time.sleep(wait_s)
            for sample in reversed(reading.stop()):
                if "process_rss_bytes" in sample.values:
                    return sample.values["process_rss_bytes"]
            if not endpoint.pids:
                break
        return None

    def log(self, subject: Subject) -> str | None:
        lease = self._lease(subject)
        on_left = _arm(subject) == "baseline"
        facts = lease.baseline_facts if on_left else lease.speculative_facts
        path = facts.extra.get("log_path")
        if path is None:
            return None
        try:
            with Path(path).open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_BYTES))
                return log.read().decode("utf-8", errors="replace")
        except OSError:  # another host's
            return None

    def close(self) -> None:
        """Gives the engines back; one that is dead is not handed out again."""
        if self._held is None:
            return
        (_, lease), self._held = self._held, None
        self._pool.release(lease, broken=self._pool.broken_arms(lease))

    def _lease(self, subject: Subject) -> Lease:
        wanted = self._wanted(subject)
        if self._held is not None:
            pair, lease = self._held
            if pair is wanted or subject == "baseline":
                return lease
            self.close()
        lease = self._pool.lease(wanted, holder=self._holder)
        self._held = (wanted, lease)
        for facts in (lease.baseline_facts, lease.speculative_facts):
            self._engines[facts.engine, facts.engine_version] = None
        return lease

    def _wanted(self, subject: Subject) -> DeploymentPair:
        if subject != "baseline_again":
            return self._pair
        if self._floor is None:
            raise ValueError("`baseline_again` is not among the subjects that are available")
        return self._floor


def _arm(subject: Subject) -> Arm:
    """A lease's arm: the relaunched baseline stands where the speculative one does."""
    return "baseline" if subject == "baseline" else "speculative"
