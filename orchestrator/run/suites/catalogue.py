"""The suites there are. A new one is one line here and one in `analyse/suites/catalogue.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.run.suites.boundary import BoundarySuite
from orchestrator.run.suites.functional import FunctionalSuite
from orchestrator.run.suites.isolation import IsolationSuite
from orchestrator.run.suites.losslessness import LosslessnessSuite
from orchestrator.run.suites.observability import ObservabilitySuite
from orchestrator.run.suites.quality import QualitySuite
from orchestrator.run.suites.soak import SoakSuite
from orchestrator.run.suites.suite import Suite


@dataclass(frozen=True)
class Entry:
    """A suite, and roughly what it takes of one deployment pair (for `plan`)."""

    make: Callable[[], Suite]
    requests: int
    """To each subject."""
    output_tokens: int
    """Of a typical answer."""
    subjects: int = 2
    """3 with the baseline relaunched."""
    limit_s: float = 3600.0
    """No case is begun after so long; the record then says that it is not complete."""
    with_settings: Callable[[Mapping[str, Any]], Suite] | None = None
    """Makes it with what the experiment's file says of it; None: it has no section there."""
    seconds: Callable[[Mapping[str, Any]], float] | None = None
    """How long it takes by its settings; None: as long as its requests."""

    def of(self, settings: Mapping[str, Any]) -> Suite:
        return self.make() if self.with_settings is None else self.with_settings(settings)


def _soak_seconds(settings: Mapping[str, Any]) -> float:
    """The soak and its controls."""
    controls = sum(bool(settings[f"{name}_control"]) for name in ("flush", "restart"))
    return float(settings["duration"] + controls * settings["control_s"])


SUITES: dict[str, Entry] = {
    "functional": Entry(FunctionalSuite, requests=55, output_tokens=32, subjects=3),
    "boundary": Entry(BoundarySuite, requests=2800, output_tokens=4, limit_s=1800),
    "isolation": Entry(IsolationSuite, requests=120, output_tokens=24, limit_s=1200),
    "observability": Entry(ObservabilitySuite, requests=90, output_tokens=24, limit_s=600),
    "losslessness": Entry(LosslessnessSuite, requests=860, output_tokens=18, subjects=3),
    "quality": Entry(QualitySuite, requests=608, output_tokens=80, subjects=3),
    "soak": Entry(
        SoakSuite,
        requests=0,
        output_tokens=0,
        limit_s=math.inf,
        with_settings=SoakSuite,
        seconds=_soak_seconds,
    ),
}
