"""What a soak has so far; as plain JSON it is its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.records import ARMS, Arm
from orchestrator.run.suites.record import SuiteRecord

PHASES = ("soak", "flushed", "restarted")


@dataclass
class SoakState:
    """`elapsed_s` is soak time: of load, over all sessions."""

    settings: Mapping[str, Any]
    elapsed_s: float = 0.0
    next_index: int = 0
    sessions: int = 0
    windows: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    life: dict[Arm, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 0))
    unavailable: dict[str, str] = field(default_factory=dict)
    """Why a control could not be made, by its name."""
    totals: list[dict[str, Any]] = field(default_factory=list)
    """Quantiles over each session: `{arm: {figure: value}}`."""
    notes: list[str] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        return {
            "settings": dict(self.settings),
            "elapsed_s": self.elapsed_s,
            "next_index": self.next_index,
            "sessions": self.sessions,
            "windows": list(self.windows),
            "events": list(self.events),
            "life": dict(self.life),
            "unavailable": dict(self.unavailable),
            "totals": list(self.totals),
            "notes": list(self.notes),
        }


def state_of(settings: Mapping[str, Any], earlier: SuiteRecord | None) -> SoakState:
    """Where an interrupted soak left off, or the beginning.

    Its engines are others now: every session is a life of its own.
    """
    if earlier is None or "soak" not in earlier.extra:
        return SoakState(settings)
    kept = dict(earlier.extra["soak"])
    kept["settings"] = settings
    state = SoakState(**kept)
    state.life = {arm: state.life.get(arm, 0) + 1 for arm in ARMS}
    minutes = state.elapsed_s / 60
    state.notes.append(f"it was interrupted after {minutes:.3g} min of load, and went on")
    return state
