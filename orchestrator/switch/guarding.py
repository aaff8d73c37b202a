"""What the switch asks of a guard: may the speculative arm be used now, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from orchestrator.switch.observation import ArmName, Observation

GuardState = Literal["healthy", "breached", "cooling", "probing"]


@dataclass(frozen=True)
class Breach:
    """A limit that the live traffic broke, with the evidence."""

    at_s: float
    rule: str
    """`acceptance`, `ttft`, `tpot`, `e2e`, `errors`, `mismatch`, `repetition`, …"""
    text: str
    """One sentence: what was seen, against which limit."""
    category: str | None = None
    evidence: Mapping[str, float | int | str | None] | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of the window, for a page and for metrics. None = not known."""

    name: str
    """Under METRICS.md's name: `ttft_p95_s`, `acceptance_rate`, `error_rate`, …"""
    arm: ArmName | None
    """None: a comparison of both."""
    category: str | None
    value: float | None
    low: float | None
    high: float | None
    limit: float | None
    samples: int


@dataclass(frozen=True)
class GuardView:
    """The guard's verdict at one moment."""

    state: GuardState
    speculative_allowed: bool
    """Whether the policy may send callers to the speculative arm. False in every state but
    `healthy`."""
    reasons: tuple[Breach, ...] = ()
    """Why not, and why a category is blocked; empty while all is healthy."""
    figures: tuple[Figure, ...] = ()
    since_s: float | None = None
    """Unix time at which this state began."""
    probe_share: float = 0.0
    """While `probing`: the share of traffic mirrored to the speculative arm (its answers are thrown
    away, so that a probe harms nobody)."""
    blocked_categories: Mapping[str, float] = field(default_factory=dict)
    """Categories that go to the baseline whatever the policy says, with the share of their traffic
    to mirror (above 0 while they are probed)."""
    probe_at_s: float | None = None
    """When the cool-down ends; None unless one runs."""


class Guard(Protocol):
    """Watches live traffic. Pure: fed with observations, asked with the time."""

    def observe(self, seen: Observation) -> None: ...

    def evaluate(self, now_s: float) -> GuardView: ...

    def snapshot(self) -> Mapping[str, Any]:
        """Plain JSON of what must outlive a restart: state, since when, how often it fell back."""

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot; the figures of the window begin anew."""


class Permissive:
    """A guard that lets everything pass: for a switch without limits."""

    def observe(self, seen: Observation) -> None:
        """Nothing is kept."""

    def evaluate(self, now_s: float) -> GuardView:
        return GuardView(state="healthy", speculative_allowed=True)

    def snapshot(self) -> Mapping[str, Any]:
        return {}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """There is nothing to restore."""
