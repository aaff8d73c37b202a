"""The one process that judges: ramp, load, guard, dead arms; and says so in the audit log."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp

from orchestrator.adapters.http.prometheus import read_page
from orchestrator.errors import StoreError
from orchestrator.records import CounterSnapshot
from orchestrator.serving.switch.board import ensure_settings
from orchestrator.serving.switch.store import SwitchStore
from orchestrator.switch.config import SwitchConfig
from orchestrator.switch.guarding import Guard, GuardView
from orchestrator.switch.observation import ArmName, Observation
from orchestrator.switch.settings import Settings
from orchestrator.switch.verdict import Seen, Verdict, conclude

JUDGE_S = 0.25
COUNTERS_S = 2.0
SAVE_S = 10.0
"""What only grows with time (a ramp's hold, what a guard has learned) is kept this often."""
SILENT_S = 5.0
"""A replica that said nothing for so long is gone."""
FRESH_S = 60.0
"""While requests bring their own drafts, an engine's counters would count them twice."""

logger = logging.getLogger("ray.serve")


class Keeper:
    """`guard` has been restored by whoever made it, or begins anew."""

    def __init__(self, config: SwitchConfig, guard: Guard) -> None:
        self.config, self.guard = config, guard
        self.store = SwitchStore(Path(config.state))
        ensure_settings(self.store, config)
        self.verdict: Verdict = self.store.verdict()
        if self.verdict.guard_snapshot:
            self._restore(self.verdict.guard_snapshot)
        self.view: GuardView = guard.evaluate(time.time())
        self.replicas: dict[str, dict[str, Any]] = {}
        self._drafts_told_s = float("-inf")
        self._counters: CounterSnapshot | None = None
        self._pending: list[Observation] = []
        self._saved_s = float("-inf")

    def _restore(self, snapshot: Mapping[str, Any]) -> None:
        """A snapshot of another version is told of and left: the guard begins anew."""
        try:
            self.guard.restore(snapshot)
        except (KeyError, TypeError, ValueError) as error:
            why = f"its snapshot cannot be read: {type(error).__name__}: {error}"
            logger.error("switch keeper: the guard begins anew: %s", why)
            self.store.note("guard_anew", why, {}, at_s=time.time())

    async def run(self) -> None:
        """For ever."""
        reading = asyncio.create_task(self._reading())
        try:
            while True:
                try:
                    await asyncio.to_thread(self.judge)
                except StoreError as error:  # replicas fall back by themselves when it lasts
                    logger.error("switch keeper: %s", error)
                await asyncio.sleep(JUDGE_S)
        finally:
            reading.cancel()

    def judge(self) -> Verdict:
        """One look at everything: the verdict is on the disk when it returns."""
        now_s = time.time()
        self._observe(now_s)
        self.replicas = self.store.told(now_s - SILENT_S)
        self.view = self.guard.evaluate(now_s)
        settings = self.store.settings()
        assert settings is not None, "made when the keeper was"
        before = self.verdict
        verdict = conclude(before, self._seen(settings, now_s))
        self._say(before, verdict, now_s)
        if _lasting(verdict) != _lasting(before) or now_s - self._saved_s >= SAVE_S:
            self.store.decide(verdict)
            self._saved_s = now_s
        self.verdict = verdict
        self.store.beat(now_s, {"callers": self._callers()})
        return verdict

    def state(self) -> dict[str, Any]:
        """All that a page or a person wants to know, as plain JSON."""
        settings = self.store.settings()
        assert settings is not None
        policy = settings.policy
        return {
            "at_s": time.time(),
            "settings": {
                "version": settings.version,
                "policy": policy.model_dump(mode="json", exclude_none=True),
                "paused": settings.paused,
                "at_s": settings.at_s,
                "who": settings.who,
                "why": settings.why,
            },
            "share": self.verdict.share,
            "probe_share": self.verdict.probe_share,
            "blocked": dict(self.verdict.blocked),
            "closed_by": list(self.verdict.closed_by),
            "alarms": list(self.verdict.alarms),
            "load_off": self.verdict.load_off,
            "ramp": {
                "step": self.verdict.ramp.step,
                "steps": list(policy.steps),
                "held_s": self.verdict.ramp.held_s,
                "hold_s": policy.ramp.hold_s if policy.ramp else None,
            },
            "guard": guard_as_plain(self.view),
            "replicas": self.replicas,
            "arms": self._arms(),
            "load": {"in_flight": self._callers(), "rps": self._rate()},
            "counts": self.counts(),
        }

    def counts(self) -> dict[str, int]:
        """Sums over the replicas that are alive, since each began."""
        sums: dict[str, int] = {}
        for replica in self.replicas.values():
            for name, number in replica["counts"].items():
                sums[name] = sums.get(name, 0) + number
        return sums

    def _observe(self, now_s: float) -> None:
        pending, self._pending = self._pending, []
        for seen in (*self.store.take_seen(), *pending):
            if seen.drafts is not None and seen.e2e_s is not None:
                self._drafts_told_s = now_s
            self.guard.observe(seen)

    def _seen(self, settings: Settings, now_s: float) -> Seen:
        limit = settings.policy.load
        load = None
        if limit is not None and self.replicas:
            load = self._rate() if limit.unit == "rps" else float(self._callers())
        return Seen(
            settings=settings.version,
            policy_version=settings.policy_version,
            policy=settings.policy,
            paused=settings.paused,
            guard=self.view,
            guard_snapshot=self.guard.snapshot(),
            baseline_up=self._up("baseline"),
            speculative_up=self._up("speculative"),
            load=load,
            return_after_s=self.config.health.return_after_s,
            now_s=now_s,
        )

    def _up(self, arm: ArmName) -> bool:
        """One replica that cannot reach it is enough: its callers count as well."""
        return all(replica["arms"][arm]["up"] for replica in self.replicas.values())

    def _arms(self) -> dict[str, dict[str, Any]]:
        return {
            arm: {
                "up": self._up(arm),
                "address": self.config.address(arm),
                "in_flight": sum(r["arms"][arm]["in_flight"] for r in self.replicas.values()),
            }
            for arm in ("baseline", "speculative")
        }

    def _callers(self) -> int:
        return sum(int(replica["callers"]) for replica in self.replicas.values())

    def _rate(self) -> float:
        return sum(float(replica["rate_rps"]) for replica in self.replicas.values())

    def _say(self, before: Verdict, now: Verdict, now_s: float) -> None:
        """Everything that changed, into the audit log, with what it rests on."""
        seen = {
            "share": now.share,
            "share_before": before.share,
            "settings": now.settings,
            "load": {"in_flight": self._callers(), "rps": self._rate()},
        }
        told: list[tuple[str, str, dict[str, Any]]] = []
        for arm in ("baseline", "speculative"):
            was = any(alarm.startswith(f"{arm} down") for alarm in before.alarms)
            is_ = any(alarm.startswith(f"{arm} down") for alarm in now.alarms)
            if is_ != was:
                alarm = next((a for a in now.alarms if a.startswith(arm)), f"{arm} answers again")
                told.append((f"{arm}_{'down' if is_ else 'up'}", alarm, {"arms": self._arms()}))
        if now.guard_state != before.guard_state:
            why = "; ".join(reason.text for reason in self.view.reasons) or now.guard_state
            told.append((f"guard_{now.guard_state}", why, guard_as_plain(self.view)))
        fresh = before.policy != now.policy
        for category in sorted(now.blocked.keys() ^ before.blocked.keys()):
            reasons = [r.text for r in self.view.reasons if r.category == category]
            if category in now.blocked:
                why = "; ".join(reasons) or category
                told.append(("category_fallback", why, {"category": category, **seen}))
            else:
                told.append(("category_return", category, {"category": category, **seen}))
        if now.closed_by != before.closed_by:
            if now.closed_by:
                told.append(("fallback", "closed by " + ", ".join(now.closed_by), seen))
            else:
                told.append(("return", "nothing holds the share back any more", seen))
        elif now.share != before.share and not fresh:
            told.append(("ramp", f"step {now.ramp.step}", seen))
        for what, why, evidence in told:
            logger.warning("switch: %s: %s", what, why)
            self.store.note(what, why, evidence, at_s=now_s)

    async def _reading(self) -> None:
        """The speculative engine's counters, every few seconds: acceptance where requests bring
        none of their own."""
        address = self.config.address("speculative")
        path = address.removeprefix("unix:")
        unix = path != address
        connector = aiohttp.UnixConnector(path) if unix else aiohttp.TCPConnector()
        url = ("http://engine" if unix else address.rstrip("/")) + "/metrics"
        timeout = aiohttp.ClientTimeout(total=COUNTERS_S)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            while True:
                await asyncio.sleep(COUNTERS_S)
                try:
                    async with session.get(url) as page:
                        text = await page.text() if page.status == 200 else ""
                except (OSError, aiohttp.ClientError, TimeoutError):
                    self._counters = None  # it may be another engine when it answers again
                    continue
                self._count(read_page(text, at_unix_s=time.time()))

    def _count(self, now: CounterSnapshot | None) -> None:
        before, self._counters = self._counters, now
        if now is None or before is None or before.replica_ids != now.replica_ids:
            return
        if now.at_unix_s - self._drafts_told_s < FRESH_S:
            return
        grown = [
            int(last - first) if first is not None and last is not None else None
            for first, last in (
                (before.drafts, now.drafts),
                (before.accepted_tokens, now.accepted_tokens),
                (before.draft_tokens, now.draft_tokens),
            )
        ]
        if not grown[0] or any(each is not None and each < 0 for each in grown):
            return
        self._pending.append(
            Observation(
                at_s=now.at_unix_s,
                arm="speculative",
                drafts=grown[0],
                accepted_tokens=grown[1],
                draft_tokens=grown[2],
            )
        )


def guard_as_plain(view: GuardView) -> dict[str, Any]:
    return {
        "state": view.state,
        "speculative_allowed": view.speculative_allowed,
        "since_s": view.since_s,
        "probe_share": view.probe_share,
        "probe_at_s": view.probe_at_s,
        "blocked_categories": dict(view.blocked_categories),
        "reasons": [asdict(reason) for reason in view.reasons],
        "figures": [asdict(figure) for figure in view.figures],
    }


def _lasting(verdict: Verdict) -> Mapping[str, Any]:
    """What of a verdict is kept as soon as it changes: all that replicas obey."""
    growing = ("ramp", "guard_snapshot")
    kept = {name: value for name, value in vars(verdict).items() if name not in growing}
    return kept | {"step": verdict.ramp.step}
