"""The real guard in a running switch: what it finds moves the callers, and is written down."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.serving.switch.app import guard_of
from orchestrator.switch.guard import GuardSettings, LiveGuard
from orchestrator.switch.guarding import Permissive
from orchestrator.switch.observation import Observation
from tests.serving.switch.room import Engine, Switch, ask, config_for, question, switch, wait_for

pytestmark = pytest.mark.slow  # a switch and two engines, on real time
SETTINGS = GuardSettings.model_validate(
    {"round_s": 0.2, "acceptance": {"floors": {"code": 0.5}}, "cool_down": {"first_s": 60.0}}
)


def seen_by(front: Switch, count: int, **what: Any) -> None:
    """As if requests had ended so."""
    for _ in range(count):
        front.board.observe(Observation(time.time(), "speculative", **what))


def test_failures_of_the_speculative_arm_turn_callers_away_and_outlive_a_restart(
    arms: dict[str, Engine], folder: Path
) -> None:
    place = folder / "guarded"
    with switch(place, LiveGuard(SETTINGS)) as front:
        wait_for(lambda: ask(front.port, question()).arm == "speculative")

        def turned_away() -> bool:
            seen_by(front, 10, error="http_500")
            return front.keeper.verdict.closed_by == ("guard",)

        wait_for(turned_away)
        wait_for(lambda: ask(front.port, question()).arm == "baseline")
        events = {event.what: event for event in front.keeper.store.events()}
        assert "failed" in events["guard_breached"].why
        guard = front.admin("GET", "/admin/state")[1]["guard"]
        assert guard["state"] == "breached" and guard["probe_at_s"] > time.time()
        assert guard["reasons"][0]["rule"] == "errors"
        assert any(f["name"] == "error_rate" and f["high"] is not None for f in guard["figures"])
    with switch(place, LiveGuard(SETTINGS)) as again:
        assert again.keeper.view.state == "breached"
        assert ask(again.port, question()).arm == "baseline"


def test_a_category_below_its_floor_goes_alone(arms: dict[str, Engine], folder: Path) -> None:
    with switch(folder / "category", LiveGuard(SETTINGS)) as front:

        def blocked() -> bool:
            seen_by(front, 10, category="code", ttft_s=0.1, e2e_s=1.0, drafts=25,
                    draft_tokens=100, accepted_tokens=5)  # fmt: skip
            return "code" in front.board.standing().blocked

        wait_for(blocked)
        code = {"x-prompt-category": "code"}
        assert ask(front.port, question(), headers=code).arm == "baseline"
        assert ask(front.port, question()).arm == "speculative"
        events = {event.what: event for event in front.keeper.store.events()}
        assert "below its floor" in events["category_fallback"].why


def test_a_snapshot_of_another_version_is_told_of_and_left(
    arms: dict[str, Engine], folder: Path
) -> None:
    class Old(Permissive):
        def snapshot(self) -> dict[str, int]:
            return {"version": 0}

    with switch(folder / "old", Old()) as front:
        wait_for(lambda: front.keeper.verdict.guard_snapshot == {"version": 0})
    with switch(folder / "old", LiveGuard(SETTINGS)) as again:
        assert again.keeper.view.state == "healthy"
        assert "guard_anew" in {event.what for event in again.keeper.store.events()}


def test_what_the_configuration_says_is_the_guard(folder: Path) -> None:
    assert isinstance(guard_of(config_for(folder / "on", guard={})), LiveGuard)
    assert isinstance(guard_of(config_for(folder / "off", guard={"enabled": False})), Permissive)
