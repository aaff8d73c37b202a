"""What the keeper concludes, again and again: how many callers may go to the speculative arm.

Pure. The keeper (one process) makes it; every replica of the switch obeys the last one made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from orchestrator.switch.gates import ArmGate, load_is_off
from orchestrator.switch.guarding import GuardView
from orchestrator.switch.policy import Policy
from orchestrator.switch.ramp import RampState, advance


@dataclass(frozen=True)
class Verdict:
    """`share` is the sum of it all; the rest says why, and lets a new keeper go on."""

    settings: int = 0
    """Version of the settings it was made under."""
    policy: int = 0
    """Version that brought the policy."""
    share: float = 0.0
    probe_share: float = 0.0
    blocked: Mapping[str, float] = field(default_factory=dict)
    """Categories that get the baseline, each with the share of it to be mirrored."""
    paused: bool = False
    load_off: bool = False
    ramp: RampState = RampState()  # noqa: RUF009 -- frozen
    gate: ArmGate = ArmGate()  # noqa: RUF009 -- frozen
    closed_by: tuple[str, ...] = ()
    """Of `paused`, `guard`, `arm`, `load`: what holds the share at 0."""
    alarms: tuple[str, ...] = ()
    guard_state: str = "healthy"
    guard_snapshot: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What the keeper looked at."""

    settings: int
    policy_version: int
    policy: Policy
    paused: bool
    guard: GuardView
    guard_snapshot: Mapping[str, Any]
    baseline_up: bool
    speculative_up: bool
    load: float | None
    """In the unit of the policy's load limit; None: not known."""
    return_after_s: float
    now_s: float


def conclude(before: Verdict, seen: Seen) -> Verdict:
    """The verdict now. Under a new policy a ramp begins at its first step."""
    fresh = before.policy != seen.policy_version
    gate = before.gate.seen(seen.speculative_up, seen.now_s)
    arm_closed = gate.closed(seen.now_s, seen.return_after_s)
    healthy = seen.guard.speculative_allowed and not arm_closed
    load_off = load_is_off(before.load_off, seen.policy.load, seen.load)
    ramp = RampState() if fresh else before.ramp
    if seen.paused:
        ramp = replace(ramp, looked_s=seen.now_s)
    else:
        ramp = advance(ramp, seen.policy, healthy=healthy, now_s=seen.now_s)
    closed_by = tuple(
        name
        for name, closed in (
            ("paused", seen.paused),
            ("guard", not seen.guard.speculative_allowed),
            ("arm", arm_closed),
            ("load", load_off),
        )
        if closed
    )
    off = seen.policy.mode == "off"
    probing = not off and not seen.paused and not arm_closed and not load_off
    return Verdict(
        settings=seen.settings,
        policy=seen.policy_version,
        share=0.0 if closed_by else ramp.share(seen.policy),
        probe_share=seen.guard.probe_share if probing else 0.0,
        blocked={
            category: share if probing else 0.0
            for category, share in seen.guard.blocked_categories.items()
        },
        paused=seen.paused,
        load_off=load_off,
        ramp=ramp,
        gate=gate,
        closed_by=closed_by,
        alarms=_alarms(seen),
        guard_state=seen.guard.state,
        guard_snapshot=seen.guard_snapshot,
    )


def verdict_as_plain(verdict: Verdict) -> dict[str, Any]:
    return asdict(verdict)


def verdict_from(plain: Mapping[str, Any]) -> Verdict:
    """Raises: KeyError, TypeError when it is none."""
    return Verdict(
        **{
            **plain,
            "ramp": RampState(**plain["ramp"]),
            "gate": ArmGate(**plain["gate"]),
            "closed_by": tuple(plain["closed_by"]),
            "alarms": tuple(plain["alarms"]),
        }
    )


def _alarms(seen: Seen) -> tuple[str, ...]:
    alarms = []
    if not seen.baseline_up:
        rest = "the speculative arm answers everybody" if seen.speculative_up else "so is the other"
        alarms.append(f"baseline down: {rest}")
    if not seen.speculative_up:
        alarms.append("speculative down: the baseline answers everybody")
    return tuple(alarms)
