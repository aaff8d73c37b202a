"""Bursts and faults: begun, undone and watched at their moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from orchestrator.plan.fresh import FreshRequests
from orchestrator.ports import FaultInjector, FaultUnavailable, Injection
from orchestrator.records import ARMS, Arm
from orchestrator.run.soak.equality import equal_answers
from orchestrator.run.soak.events import (
    BEFORE_S,
    Recent,
    Row,
    Watched,
    fault_label,
    watched_until,
)
from orchestrator.run.soak.profile import Profile
from orchestrator.run.soak.state import SoakState
from orchestrator.run.soak.watch import OpenWindow
from orchestrator.run.suites.openai import completion
from orchestrator.run.suites.suite import Bench

DISCONNECTS_IN_FLIGHT = 64
AT_ONCE = ("engine_killed",)
"""Faults that are done when they have begun: what follows is recovery."""
LEAD_S = 5.0
"""From the questions before a fault to the fault: the load is its usual self again."""


class Incidents:
    """At most one event is on at a time. Seconds are the soak's."""

    def __init__(
        self,
        bench: Bench,
        requests: FreshRequests,
        injector: FaultInjector,
        profile: Profile,
        state: SoakState,
        recent: Recent,
        now_s: Callable[[], float],
    ) -> None:
        self._bench, self._requests, self._injector = bench, requests, injector
        self._profile, self._state = profile, state
        self._recent, self._now_s = recent, now_s
        faults = sorted(state.settings["faults"], key=lambda fault: fault["at"])
        self._coming: list[Mapping[str, Any]] = [
            fault for fault in faults if fault["at"] >= state.elapsed_s
        ]
        self._watched: Watched | None = None
        self._injection: Injection | None = None
        self._pending: tuple[float, Mapping[str, Any]] | None = None
        """When the fault that was announced is injected."""
        self._bursts_seen: set[float] = set()

    @property
    def holds(self) -> bool:
        """Whether a fault is on that an engine is not to be rescued from."""
        return self._injection is not None

    def died(self, arm: Arm) -> bool:
        """Notes that an engine was dead; False when no event is on."""
        if self._watched is None:
            return False
        self._watched.died[arm] = True
        return True

    def next_s(self, now_s: float) -> float:
        """The next moment at which something is due."""
        moments = [fault["at"] for fault in self._coming[:1]]
        if self._pending is not None:
            moments.append(self._pending[0])
        elif self._watched is not None:
            moments += [self._watched.ended_s if self.holds else self._watched.until_s]
        moments += self._profile.changes_after(now_s)
        return min((moment for moment in moments if moment > now_s), default=math.inf)

    def due(self, now_s: float, window: OpenWindow) -> None:
        """Begins and ends what is due; marks the window."""
        watched = self._watched
        if watched is not None and self.holds and now_s >= watched.ended_s:
            self._undo()
        if self._pending is not None and now_s >= self._pending[0]:
            self._inject(self._pending[1], now_s)
        elif watched is not None and not self.holds and now_s >= watched.until_s:
            self._close()
        if self._coming and now_s >= self._coming[0]["at"]:
            self._begin(self._coming.pop(0), now_s)
        burst = self._profile.burst(now_s)
        if burst is not None:
            window.burst = True
            new = burst.began_s not in self._bursts_seen
            if new and burst.watched and self._watched is None:
                label = f"x{burst.factor:g} for {burst.ended_s - burst.began_s:g} s"
                self._watch("burst", label, now_s, burst.ended_s)
            self._bursts_seen = {burst.began_s}
        if self._watched is not None:
            window.burst = window.burst or self._watched.kind == "burst"
            window.fault = window.fault or self._watched.kind != "burst"

    def add(self, arm: Arm, rows: Sequence[Row]) -> None:
        """What ended in the last seconds."""
        if self._watched is not None:
            self._watched.add(arm, rows)

    def end(self, now_s: float) -> None:
        """The soak is over: what is on is undone and closed."""
        self._undo()
        self._pending = None
        if self._watched is not None:
            self._watched.until_s = min(self._watched.until_s, now_s)
            self._close(ask=False)

    def _begin(self, fault: Mapping[str, Any], now_s: float) -> None:
        if self._pending is not None and self._watched is not None:
            self._pending = None
            self._skip(self._watched, "the one before it took until the next was due")
        if self._watched is not None:
            self._undo()
            self._close()
        watched = self._watch(fault["kind"], fault_label(fault), now_s, now_s + fault["lasts"])
        watched.equal["before"] = self._equal("before")
        self._pending = (self._now_s() + LEAD_S, fault)

    def _inject(self, fault: Mapping[str, Any], now_s: float) -> None:
        self._pending = None
        watched = self._watched
        assert watched is not None
        kind = fault["kind"]
        self._bench.say(f"soak: {kind}, {fault_label(fault)}")
        later_s = now_s - watched.began_s
        watched.began_s, watched.ended_s = now_s, now_s + fault["lasts"]
        watched.until_s += later_s
        endpoints = {arm: self._bench.subjects.endpoint(arm) for arm in ARMS}
        try:
            if kind == "disconnects":
                self._disconnect(fault["clients"])
                watched.ended_s = self._now_s()
            else:
                self._injection = self._injector.inject(fault, endpoints)
        except FaultUnavailable as why:
            self._skip(watched, str(why))
            return
        if kind in AT_ONCE:
            self._undo()
            watched.ended_s = self._now_s()

    def _skip(self, watched: Watched, why: str) -> None:
        """Loudly: what was not injected was not survived."""
        watched.skipped = why
        self._bench.say(f"soak: {watched.kind} SKIPPED: {why}")
        self._state.events.append({**watched.as_plain(), "requests": {}})
        self._watched = None

    def _watch(self, kind: str, label: str, now_s: float, ended_s: float) -> Watched:
        following = self._coming[0]["at"] if self._coming else None
        until_s = watched_until(
            ended_s, ended_s - now_s, following, float(self._state.settings["duration"])
        )
        rows = self._recent.since(now_s - BEFORE_S)
        self._watched = Watched(kind, label, now_s, ended_s, until_s, rows)
        return self._watched

    def _undo(self) -> None:
        if self._injection is not None:
            self._injection.undo()
            self._injection = None

    def _close(self, *, ask: bool = True) -> None:
        watched, self._watched = self._watched, None
        if watched is None:
            return
        if ask and watched.kind != "burst":
            watched.equal["after"] = self._equal("after")
        self._state.events.append(watched.as_plain())

    def _equal(self, when: str) -> list[int]:
        number = 2 * len(self._state.events) + (when == "after")
        return equal_answers(self._bench, self._requests, number, when)

    def _disconnect(self, clients: int) -> None:
        """So many clients of each arm that leave once the answer has begun."""

        def leave(arm: Arm) -> None:
            model = self._bench.model(arm)
            ask = completion(model, "Tell a long story.", max_tokens=64, stream=True)
            asks = [replace(ask, abandon_after_events=1)] * clients
            endpoint = self._bench.subjects.endpoint(arm)
            self._bench.asker.ask(endpoint, asks, in_flight=DISCONNECTS_IN_FLIGHT)

        with ThreadPoolExecutor(max_workers=len(ARMS)) as threads:
            list(threads.map(leave, ARMS))
