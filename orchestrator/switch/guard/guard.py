"""The guard: live traffic in, a verdict out. No clock, no I/O, no randomness of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.switch.guard.baseline import BaselineShares
from orchestrator.switch.guard.check import RECENT_ROUNDS, Check
from orchestrator.switch.guard.fallback import Fallback
from orchestrator.switch.guard.limits import bounds_of, hits_of
from orchestrator.switch.guard.pairing import Pairing
from orchestrator.switch.guard.recent import RecentShare
from orchestrator.switch.guard.said import breach_of
from orchestrator.switch.guard.settings import GuardSettings
from orchestrator.switch.guard.watch import DROP, UsualByCategory, Watch
from orchestrator.switch.guard.window import Window
from orchestrator.switch.guarding import Breach, Figure, GuardView
from orchestrator.switch.observation import Observation

DAY_S = 86_400.0
SUSPICION = 20.0
"""Evidence of a drop at which what is seen is no longer learned as usual."""
PROBE_LEVEL = 20.0
"""A probe of a sound arm fails with a probability of at most 1 / 20 (Ville)."""
PROBE_SEEN = 20
"""Observations of what was broken that a probe takes, before it may pass."""
SNAPSHOT = 1
USUAL_EVERY_S = 60.0


class LiveGuard:
    """Implements `guarding.Guard`.

    A breach of a check of the whole moves all traffic to the baseline; one of a category's own
    checks moves that category alone.
    """

    def __init__(self, settings: GuardSettings, *, shows_figures: bool = True) -> None:
        self._settings = settings
        self._level = max(1.0, settings.false_alarm_days * DAY_S / settings.round_s)
        self._shows_figures = shows_figures
        self._bounds = [b for b in bounds_of(settings) if b.excused_by_baseline]
        self._usual = UsualByCategory(settings.acceptance)
        self._watch = Watch(settings, self._usual)
        self._probe: Watch | None = None
        self._whole = Fallback(settings.cool_down)
        self._categories: dict[str, Fallback] = {}
        self._category_probes: dict[str, Watch] = {}
        self._pairing = Pairing()
        self._baseline = BaselineShares()
        self._speculative_share = RecentShare(RECENT_ROUNDS)
        self._window = Window(settings.window_s)
        self._figures: tuple[Figure, ...] = ()
        self._round_began_s: float | None = None
        self._usual_taken: dict[str, Any] = {}
        self._usual_taken_s = -math.inf

    def observe(self, seen: Observation) -> None:
        if self._shows_figures:
            self._window.add(seen)
        if seen.is_request:
            self._speculative_share.add(seen.arm == "speculative")
        pair = self._pairing.pair(seen) if seen.is_request and seen.error is None else None
        if seen.arm == "baseline":
            for bound in self._bounds:
                hit = hits_of(bound, seen)
                if hit is not None:
                    self._baseline.add(bound.rule, hit)
        watch = self._watch_of(seen.category)
        if watch is None:
            return
        if seen.arm == "speculative":
            watch.observe(seen)
        if pair is not None:
            watch.pair(pair)

    def _watch_of(self, category: str | None) -> Watch | None:
        """Who judges a request now; None while the speculative arm rests."""
        if self._whole.state != "healthy":
            return self._probe
        if category is not None and category in self._categories:
            fallback = self._categories[category]
            if fallback.state != "healthy":
                return self._category_probes.get(category)
        return self._watch

    def evaluate(self, now_s: float) -> GuardView:
        began_s = self._round_began_s
        if began_s is None or now_s < began_s:  # the first time, or a clock that was set back
            self._round_began_s = now_s
        elif now_s - began_s >= self._settings.round_s:
            self._round_began_s = now_s
            self._close_round(now_s)
        self._whole.tick(now_s)
        for fallback in self._categories.values():
            fallback.tick(now_s)
        self._prepare_probes()
        return self._view()

    def _close_round(self, now_s: float) -> None:
        comparable = self._comparable
        watches = [self._watch, *self._category_probes.values()]
        for watch in [*watches, *([self._probe] if self._probe else [])]:
            watch.close(now_s, self._baseline, comparable=comparable)
        self._baseline.close()
        self._speculative_share.close()
        self._learn(now_s)
        if self._whole.state == "healthy":
            self._judge_whole(now_s)
        elif self._whole.state == "probing" and self._probe is not None:
            self._judge_probe(now_s, self._whole, self._probe, category=None)
        for category, probe in list(self._category_probes.items()):
            self._judge_probe(now_s, self._categories[category], probe, category=category)
        for category, fallback in list(self._categories.items()):
            if fallback.state == "healthy" and not fallback.steps:
                del self._categories[category]
        if self._shows_figures:
            self._figures = (
                *self._window.figures(now_s, self._limit),
                *self._evidence(),
            )

    @property
    def _comparable(self) -> bool:
        mine, all_of_them = self._speculative_share.hits, self._speculative_share.of
        return mine <= self._settings.comparable_load * (all_of_them - mine)

    def _learn(self, now_s: float) -> None:
        whole = self._watch.check(DROP, None)
        for name, usual in self._usual.known.items():
            own = self._watch.check(DROP, name) or whole
            fallback = self._categories.get(name)
            resting = self._whole.state != "healthy" or (
                fallback is not None and fallback.state != "healthy"
            )
            suspected = any(c is not None and c.suspects(SUSPICION) for c in (whole, own))
            usual.close(now_s, suspected=resting or suspected)

    def _judge_whole(self, now_s: float) -> None:
        broken = self._watch.alarms(self._level)
        if broken:
            self._whole.breach(now_s, self._breaches(broken, self._watch, now_s))
            self._watch = Watch(self._settings, self._usual)
            return
        for category in self._watch.categories:
            broken = self._watch.alarms(self._level, category=category)
            if broken:
                fallback = self._categories.setdefault(category, Fallback(self._settings.cool_down))
                fallback.breach(now_s, self._breaches(broken, self._watch, now_s))
                self._watch.forget(category)

    def _judge_probe(
        self, now_s: float, fallback: Fallback, probe: Watch, *, category: str | None
    ) -> None:
        broken = probe.alarms(PROBE_LEVEL, category=category)
        settings = self._settings.probe
        since_s = now_s if fallback.since_s is None else fallback.since_s
        if broken:
            fallback.fail_probe(now_s, self._breaches(broken, probe, now_s))
        elif probe.requests < settings.requests or now_s - since_s < settings.min_s:
            return  # with little traffic it takes as long as it takes: mirrors harm nobody
        elif all(_mended(probe.check(b.rule, b.category)) for b in fallback.reasons):
            fallback.pass_probe(now_s)
        elif now_s - since_s >= settings.max_s:
            fallback.put_off_probe(now_s)

    def _breaches(self, broken: Sequence[Check], watch: Watch, now_s: float) -> list[Breach]:
        margin = self._settings.slower_than_baseline
        return [breach_of(check, watch, now_s, margin=margin) for check in broken]

    def _prepare_probes(self) -> None:
        """A probe judges what it has seen itself, and stands on its own."""
        if self._whole.state != "probing":
            self._probe = None
        elif self._probe is None:
            self._probe = Watch(self._settings, self._usual, restarting=False)
        for category, fallback in self._categories.items():
            if fallback.state != "probing" or self._whole.state != "healthy":
                self._category_probes.pop(category, None)
            elif category not in self._category_probes:
                probe = Watch(self._settings, self._usual, restarting=False)
                self._category_probes[category] = probe

    def _view(self) -> GuardView:
        share = self._settings.probe.share
        resting = {c: f for c, f in self._categories.items() if f.state != "healthy"}
        return GuardView(
            state=self._whole.state,
            speculative_allowed=self._whole.state == "healthy",
            reasons=(*self._whole.reasons, *(b for f in resting.values() for b in f.reasons)),
            figures=self._figures,
            since_s=self._whole.since_s,
            probe_share=share if self._whole.state == "probing" else 0.0,
            blocked_categories={
                category: share if category in self._category_probes else 0.0
                for category in resting
            },
            probe_at_s=self._whole.probe_at_s,
        )

    def _limit(self, name: str) -> float | None:
        """Of a figure, for the speculative arm."""
        settings = self._settings
        if name.startswith("acceptance_rate"):
            _, _, category = name.partition("/")
            limits = settings.acceptance
            return limits.floors.get(category, limits.floor) if category else limits.floor
        return {
            "error_rate": settings.error_rate_max,
            "mismatch_rate": settings.mismatch_max,
            "repetitive_rate": settings.repetitive_max,
            "repetition": settings.repetition_above,
            **settings.slo,
        }.get(name)

    def _evidence(self) -> tuple[Figure, ...]:
        """How near to an alarm each check is: 1 is one."""
        watch = self._probe or self._watch
        level = PROBE_LEVEL if self._probe else self._level
        return tuple(
            Figure(
                f"evidence_{check.rule}",
                None,
                check.category,
                check.nearness(level),
                None,
                None,
                1.0,
                check.observations,
            )
            for check in watch.checks
        )

    def snapshot(self) -> Mapping[str, Any]:
        """What was usual is taken down once a minute: it is asked for far more often."""
        now_s = self._round_began_s or 0.0
        if not 0 <= now_s - self._usual_taken_s < USUAL_EVERY_S:
            self._usual_taken = {c: u.distribution.snapshot() for c, u in self._usual.known.items()}
            self._usual_taken_s = now_s
        return {
            "version": SNAPSHOT,
            "whole": self._whole.snapshot(),
            "categories": {c: f.snapshot() for c, f in self._categories.items()},
            "usual": self._usual_taken,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Raises: KeyError, TypeError or ValueError when it is not a snapshot of this version; the
        guard is then as it was."""
        if snapshot["version"] != SNAPSHOT:
            raise ValueError(f"version: must be {SNAPSHOT}, got {snapshot['version']!r}")
        whole = Fallback(self._settings.cool_down)
        whole.restore(snapshot["whole"])
        categories = {c: Fallback(self._settings.cool_down) for c in snapshot["categories"]}
        for category, fallback in categories.items():
            fallback.restore(snapshot["categories"][category])
        usual = UsualByCategory(self._settings.acceptance)
        for category, kept in snapshot["usual"].items():
            one = usual.of(category)
            if one is not None:
                one.distribution.restore(kept)
                one.refresh()
        self._whole, self._categories, self._usual = whole, categories, usual
        self._watch = Watch(self._settings, usual)
        self._probe, self._category_probes = None, {}
        self._usual_taken_s = -math.inf


def _mended(check: Check | None) -> bool:
    """Whether a probe has seen enough of what was broken, and found it within what is borne."""
    if check is None or check.seen is None:
        return False
    return check.observations >= PROBE_SEEN and check.seen.share <= check.seen.allowed
