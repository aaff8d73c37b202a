"""Where a ramp stands. Pure: the caller hands in the time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.switch.policy import Policy, Ramp

LONGEST_GAP_S = 30.0
"""Time between two looks that counts at most: nobody watched the rest."""


@dataclass(frozen=True, slots=True)
class RampState:
    step: int = 0
    held_s: float = 0.0
    """Healthy time spent at this step."""
    looked_s: float | None = None

    def share(self, policy: Policy) -> float:
        steps = policy.steps
        return steps[min(self.step, len(steps) - 1)]


def advance(state: RampState, policy: Policy, *, healthy: bool, now_s: float) -> RampState:
    """The state now. Unhealthy: back to the first step, from which it begins again once healthy.

    A pause is no look: the caller leaves it out, and the gap is then cut to `LONGEST_GAP_S`.
    """
    if not healthy:
        return RampState(looked_s=now_s)
    if policy.mode != "ramp" or state.looked_s is None:
        return replace(state, looked_s=now_s)
    gap_s = min(LONGEST_GAP_S, max(0.0, now_s - state.looked_s))
    held_s = state.held_s + gap_s
    ramp = policy.ramp or Ramp()
    if held_s >= ramp.hold_s and state.step + 1 < len(ramp.steps):
        return RampState(step=state.step + 1, looked_s=now_s)
    return RampState(step=state.step, held_s=held_s, looked_s=now_s)
