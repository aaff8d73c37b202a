"""Simulated traffic under a guard: its verdict moves the traffic, as a switch would."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.adapters.simulated.live_traffic import LiveTraffic, TrafficShape
from orchestrator.switch.guarding import Guard, GuardView

EVERY_S = 5.0


def guarded(
    guard: Guard, traffic: LiveTraffic, shape: TrafficShape, from_s: float, until_s: float
) -> Iterator[tuple[float, GuardView]]:
    """(time, view) whenever the verdict has changed, the first included."""
    view = guard.evaluate(from_s)
    last = _verdict(view)
    yield from_s, view

    def share(category: str) -> float:
        free = view.speculative_allowed and category not in view.blocked_categories
        return shape.share if free else 0.0

    def mirrored(category: str) -> float:
        if view.state == "probing":
            return view.probe_share
        if not view.speculative_allowed:
            return 0.0
        return view.blocked_categories.get(category, shape.shadow_share)

    steps = round((until_s - from_s) / EVERY_S)
    for step in range(steps):
        at_s = from_s + step * EVERY_S
        for seen in traffic.between(at_s, at_s + EVERY_S, share=share, mirrored=mirrored):
            guard.observe(seen)
        view = guard.evaluate(at_s + EVERY_S)
        if _verdict(view) != last:
            last = _verdict(view)
            yield at_s + EVERY_S, view


def _verdict(view: GuardView) -> tuple[object, ...]:
    return view.state, dict(view.blocked_categories), view.reasons
