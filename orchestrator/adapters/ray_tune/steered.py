"""A search, as Ray Tune asks for one: what it runs next, and what it stops after a pair."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from orchestrator.plan.trial import Trial
from orchestrator.ports import PairReport, Steering

Point = Callable[[Trial], Mapping[str, Any]]


class SteeredSearcher(Searcher):  # type: ignore[misc]
    """Suggests what `steering` begins. The driver tells it how trials end (`ProgressCallback`):
    it alone also knows of those whose process died."""

    def __init__(
        self, steering: Steering, point: Point, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._steering, self._point, self._now = steering, point, monotonic

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune writes its parts to disk, and this one lives in the driver alone."""
        return {}

    def suggest(self, trial_id: str) -> Any:
        trial = self._steering.next(self._now())
        return Searcher.FINISHED if trial is None else {"point": dict(self._point(trial))}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Nothing: see the class."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing: our store decides what still has to run (docs/adr/0002)."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: see `save`."""


class SteeredScheduler(FIFOScheduler):  # type: ignore[misc]
    """Stops a trial after a pair when `steering` says so; why is in `reasons`, by trial id."""

    def __init__(self, steering: Steering, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._steering, self._now = steering, monotonic
        self.reasons: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune writes its parts to disk, and this one lives in the driver alone."""
        return {}

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        report = report_from(result)
        reason = None if report is None else self._steering.after_pair(report, self._now())
        if report is None or reason is None:
            return str(TrialScheduler.CONTINUE)
        self.reasons[report.trial_id] = reason
        return str(TrialScheduler.STOP)


def report_from(result: Mapping[str, Any]) -> PairReport | None:
    """The pair's report in a result that Tune has flattened; None: it reports something else."""
    prefix = "report/"
    flat = {name[len(prefix) :]: v for name, v in result.items() if name.startswith(prefix)}
    if not flat or result.get("done"):
        return None
    return PairReport(
        trial_id=flat["trial_id"],
        pairs_done=flat["pairs_done"],
        pairs_max=flat["pairs_max"],
        metrics={
            name.removeprefix("metrics/"): value
            for name, value in flat.items()
            if name.startswith("metrics/")
        },
        ends=flat["ends"],
    )
