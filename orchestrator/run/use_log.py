"""Writes down, while a sweep runs, what this run of it had and where its time went.

After every trial, so that a run that is killed has told nearly everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from orchestrator.ports import DeviceUse, OnProgress, Progress
from orchestrator.records import Outcome, RunUse
from orchestrator.store import SweepFolder

GetUse = Callable[[], DeviceUse]


class UseLog:
    """One run of a sweep. `get_use` None: nothing is known of devices, and nothing is written."""

    def __init__(
        self,
        folder: SweepFolder,
        get_use: GetUse | None,
        *,
        now_unix: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._get_use, self._now = folder, get_use, monotonic
        self._began = monotonic()
        self._run = RunUse(began_unix_s=now_unix())

    def watching(self, forward: OnProgress) -> OnProgress:
        """`forward`, with the ends of trials noted."""

        def note(event: Progress) -> None:
            if event.kind == "trial_ended" and event.outcome is not None:
                self._add(event.outcome)
                self.write()
            forward(event)

        return note

    def _add(self, outcome: Outcome) -> None:
        run, starting = self._run, outcome.starting_s or 0.0
        self._run = replace(
            run,
            trials=run.trials + 1,
            measured_s=run.measured_s + (outcome.measured_s or 0.0),
            warmup_s=run.warmup_s + (outcome.warmup_s or 0.0),
            waiting_for_starts_s=run.waiting_for_starts_s + starting,
            waiting_s=run.waiting_s + max(0.0, (outcome.waiting_s or 0.0) - starting),
        )

    def write(self) -> None:
        """A run in which no trial ended is not written: it had nothing to do."""
        if self._get_use is None or not self._run.trials:
            return
        use = self._get_use()
        self._run = replace(
            self._run,
            wall_s=self._now() - self._began,
            device_pairs=use.device_pairs,
            engine_starts=max(use.engine_starts, self._run.engine_starts),
            failed_starts=max(use.failed_starts, self._run.failed_starts),
            engines_starting_s=max(use.starting_s, self._run.engines_starting_s),
        )
        self._folder.save_run(self._run)
