"""The settings as they stand, and one change of them."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.switch.policy import Policy


@dataclass(frozen=True)
class Settings:
    """A version is never changed: a change is a new version."""

    version: int
    policy: Policy
    paused: bool
    at_s: float
    who: str
    why: str
    policy_version: int
    """The version that brought this policy: a pause does not begin a ramp anew."""


@dataclass(frozen=True)
class Event:
    """One line of the audit log. Never changed, never taken out."""

    id: int
    at_s: float
    who: str
    """An operator's name, or `switch`."""
    what: str
    """`policy`, `pause`, `resume`, `fallback`, `return`, `ramp`, `arm_down`, `arm_up`, …"""
    why: str
    evidence: dict[str, object]
