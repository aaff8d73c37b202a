"""Everything that may be said of a sweep, by rules: what holds, where, how surely, on what."""

from __future__ import annotations

from orchestrator.decide.bottleneck import bottlenecks
from orchestrator.decide.choice import choices
from orchestrator.decide.conclusion import Conclusion
from orchestrator.decide.conditions import control_state
from orchestrator.decide.effect import effects
from orchestrator.decide.effect_over_length import effects_over_length
from orchestrator.decide.needed_acceptance import acceptances
from orchestrator.decide.overall import overall
from orchestrator.decide.resources import resources
from orchestrator.decide.risks import risks
from orchestrator.decide.soundness import quality, stability
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.switch_off import switch_off_loads


def conclusions(result: SweepResult) -> tuple[Conclusion, ...]:
    """The statements of a report, the one that sums up first; one `Kind` after the other.

    Where the A/A control failed, nothing about speed is said: a difference between equal arms means
    that the differences between unequal ones have another cause as well.
    """
    speed: tuple[Conclusion, ...] = ()
    if control_state(result) != "failed":
        speed = (
            *effects(result),
            *effects_over_length(result),
            *switch_off_loads(result),
            *choices(result),
            *acceptances(result),
        )
    return (
        overall(result),
        *speed,
        *quality(result),
        *stability(result),
        *resources(result),
        *bottlenecks(result),
        *risks(result),
    )
