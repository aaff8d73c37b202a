"""One request's arm. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.switch.observation import ArmName
from orchestrator.switch.policy import Policy
from orchestrator.switch.sticky import place


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks."""

    request: str
    """A name no other request has."""
    sticky: str | None = None
    """User or session; None: nobody to be faithful to, each request is dealt by itself."""
    tenant: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What the switch knows at this moment, from its state and from the arms themselves."""

    share: float
    """Of callers, after ramp, load, guard and pause: see `verdict.py`."""
    probe_share: float = 0.0
    """Of requests, to be mirrored because the guard probes."""
    baseline_up: bool = True
    speculative_up: bool = True
    mirrored_in_flight: int = 0
    callers_in_flight: int = 0
    blocked: Mapping[str, float] = field(default_factory=dict)
    """Categories that the guard keeps on the baseline, with the share to mirror of each."""
    mirror: bool = True
    """False: paused, or nobody watches: nothing is mirrored either."""


@dataclass(frozen=True, slots=True)
class Route:
    arm: ArmName
    why: str
    """`share`, `rest`, `not chosen`, `speculative down`, `category blocked`,
    `baseline down`, `both down`."""
    mirror: bool = False


def route(asker: Asker, policy: Policy, now: Standing) -> Route:
    """The arm that answers this caller, and whether the other is asked afterwards."""
    if not now.baseline_up:
        if now.speculative_up:
            return Route("speculative", "baseline down")
        return Route("baseline", "both down")
    if not now.speculative_up:
        return Route("baseline", "speculative down")
    if policy.only is not None and not policy.only.includes(asker.category, asker.tenant):
        return Route("baseline", "not chosen")
    if asker.category is not None and asker.category in now.blocked:
        probed = now.blocked[asker.category]
        return Route("baseline", "category blocked", mirror=_mirrored(asker, policy, now, probed))
    if place(asker.sticky or asker.request, salt="share") < now.share:
        return Route("speculative", "share")
    return Route("baseline", "rest", mirror=_mirrored(asker, policy, now, now.probe_share))


def may_mirror(policy: Policy, callers_in_flight: int, mirrored_in_flight: int) -> bool:
    """Whether mirrored work has room beside the callers: it is the first to go under load."""
    shadow = policy.shadow
    most = 1 if shadow is None else shadow.max_in_flight
    load = most * 8 if shadow is None or shadow.max_load is None else shadow.max_load
    return mirrored_in_flight < most and callers_in_flight <= load


def _mirrored(asker: Asker, policy: Policy, now: Standing, probed: float) -> bool:
    share = max(policy.shadow.share if policy.shadow else 0.0, probed)
    if share <= 0 or not now.mirror:
        return False
    if not may_mirror(policy, now.callers_in_flight, now.mirrored_in_flight):
        return False
    return place(asker.request, salt="mirror") < share
