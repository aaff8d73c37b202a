"""Who judges which suite's records. A new suite is one line here."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.analyse.suites.boundary import judge_boundary
from orchestrator.analyse.suites.functional import judge_functional
from orchestrator.analyse.suites.isolation import judge_isolation
from orchestrator.analyse.suites.losslessness import judge_losslessness
from orchestrator.analyse.suites.observability import judge_observability
from orchestrator.analyse.suites.quality import judge_quality
from orchestrator.analyse.suites.soak import judge_soak
from orchestrator.run.suites.record import SuiteRecord, SuiteResult

Judge = Callable[[SuiteRecord], SuiteResult]

JUDGES: dict[str, Judge] = {
    "functional": judge_functional,
    "boundary": judge_boundary,
    "isolation": judge_isolation,
    "observability": judge_observability,
    "losslessness": judge_losslessness,
    "quality": judge_quality,
    "soak": judge_soak,
}
