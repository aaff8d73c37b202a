"""Hours of load on both arms side by side, with bursts and faults if they are asked for.

What it shows is judged by `analyse.suites.soak`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.errors import ClientFailed
from orchestrator.run.soak.conductor import Conductor
from orchestrator.run.suites.record import SuiteRecord
from orchestrator.run.suites.suite import Bench
from orchestrator.spec.soak import Soak

VERSION = 1


@dataclass(frozen=True)
class SoakSuite:
    """`given` is the experiment's `soak` section as plain JSON (`soak_settings`)."""

    given: Mapping[str, Any] = field(default_factory=dict)
    name: str = field(default="soak", init=False)

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.given

    def run(self, bench: Bench) -> SuiteRecord:
        """Raises: ClientFailed where there is nothing to send a continuous load with."""
        if bench.soak is None or bench.keeper is None:
            raise ClientFailed(
                "no continuous load can be sent from here: a soak needs engines on this machine, "
                "servers that are attached, or simulated engines"
            )
        return Conductor(bench, bench.soak, bench.keeper, self.given).run()


def soak_settings(soak: Soak, workloads: Mapping[str, str]) -> dict[str, Any]:
    """What names a soak: its section, resolved, and the prompts of its workloads."""
    return {
        **soak.model_dump(mode="json"),
        "window_s": soak.window_s,
        "control_s": soak.control_s,
        "horizon_s": soak.horizon,
        "version": VERSION,
        "workloads": dict(workloads),
    }
