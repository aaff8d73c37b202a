"""What one replica of the switch knows and obeys: settings, verdict, arms; and what it tells."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections import deque
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.serving.switch.arm import Arm
from orchestrator.serving.switch.records import RequestFiles
from orchestrator.serving.switch.store import SwitchStore
from orchestrator.switch.config import SwitchConfig
from orchestrator.switch.observation import ArmName, Observation
from orchestrator.switch.policy import Policy
from orchestrator.switch.routing import Standing, may_mirror
from orchestrator.switch.settings import Settings
from orchestrator.switch.verdict import Verdict

LOOK_S = 0.1
"""How often a change of settings or verdict is looked for."""
TELL_S = 0.25
RATE_WINDOW_S = 10.0
MOST_WAITING = 20_000
"""Observations and records that wait for a disk that does not take them; the oldest go."""

logger = logging.getLogger("ray.serve")


class Board:
    """Opened and closed with its replica."""

    def __init__(self, config: SwitchConfig) -> None:
        self.config = config
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self.store = SwitchStore(Path(config.state))
        ensure_settings(self.store, config)
        self.arms: dict[ArmName, Arm] = {
            name: Arm(name, config.address(name), config.health, self._arm_changed)
            for name in ("baseline", "speculative")
        }
        self.callers = 0
        self.mirrored = 0
        self.mirror_tasks: set[asyncio.Task[None]] = set()
        self.load_now = 0
        """Callers in flight, over all replicas, as of the last look."""
        self._load_s = float("-inf")
        self._observations: deque[Observation] = deque(maxlen=MOST_WAITING)
        self._arrivals: deque[float] = deque()
        self._counts: dict[str, int] = {}
        self._files = RequestFiles(config.records, Path(config.state) / "requests", self.name)
        self._tasks: list[asyncio.Task[None]] = []
        self._beat_s = time.time()
        self._version = -1
        self._look()

    async def open(self) -> None:
        for arm in self.arms.values():
            await arm.open()
        for job in (self._looking(), self._telling(), *(a.watch() for a in self.arms.values())):
            self._tasks.append(asyncio.create_task(job))

    async def close(self) -> None:
        for task in (*self._tasks, *self.mirror_tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, *self.mirror_tasks, return_exceptions=True)
        for arm in self.arms.values():
            await arm.close()
        await asyncio.to_thread(self._tell)
        with contextlib.suppress(StoreError):
            self.store.leave(self.name)
        self.store.close()

    # For the ingress

    @property
    def watched(self) -> bool:
        """Whether a keeper was heard lately. Unwatched, everybody gets the baseline."""
        return time.time() - self._beat_s < self.config.health.keeper_silent_s

    def standing(self) -> Standing:
        verdict, watched = self.verdict, self.watched
        current = verdict.settings == self.settings.version and watched
        return Standing(
            share=verdict.share if current and not self.settings.paused else 0.0,
            probe_share=verdict.probe_share if current else 0.0,
            blocked=verdict.blocked,
            baseline_up=self.arms["baseline"].up,
            speculative_up=self.arms["speculative"].up,
            mirrored_in_flight=self.mirrored,
            callers_in_flight=max(self.load_now, self.callers),
            mirror=current and not self.settings.paused and not verdict.load_off,
        )

    def arrived(self) -> None:
        self.callers += 1
        self._arrivals.append(time.monotonic())
        if self.mirror_tasks and not may_mirror(self.policy, self.callers, 0):
            for task in list(self.mirror_tasks):
                task.cancel()  # callers first

    def left(self) -> None:
        self.callers -= 1

    def count(self, name: str) -> None:
        self._counts[name] = self._counts.get(name, 0) + 1

    def observe(self, seen: Observation) -> None:
        self._observations.append(seen)

    def record(self, line: dict[str, Any]) -> None:
        self._files.add(line)

    @property
    def policy(self) -> Policy:
        return self.settings.policy

    # Behind it

    def _look(self) -> None:
        changed = self.store.changed()
        if changed != self._version:
            settings = self.store.settings()
            assert settings is not None, "made when the board was"
            self.settings: Settings = settings
            self.verdict: Verdict = self.store.verdict()
            self._version = changed
        beat = self.store.last_beat()
        if beat is not None:
            self._beat_s = beat[0]
            self.load_now = int(beat[1].get("callers", 0))

    async def _looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self._kept(self._look)

    async def _telling(self) -> None:
        while True:
            await asyncio.sleep(TELL_S)
            await self._kept(self._tell)

    async def _kept(self, job: Any) -> None:
        """In a thread. A disk that fails does not end the service: it goes on as it stands."""
        try:
            await asyncio.to_thread(job)
        except (StoreError, OSError) as error:
            self.count("store_errors")
            logger.error("switch: %s", error)

    def _tell(self) -> None:
        seen = [self._observations.popleft() for _ in range(len(self._observations))]
        now = time.monotonic()
        while self._arrivals and self._arrivals[0] < now - RATE_WINDOW_S:
            self._arrivals.popleft()
        plain = {
            "callers": self.callers,
            "mirrored": self.mirrored,
            "rate_rps": len(self._arrivals) / RATE_WINDOW_S,
            "arms": {
                name: {"up": arm.up, "in_flight": arm.in_flight} for name, arm in self.arms.items()
            },
            "counts": dict(self._counts),
            "settings": self.settings.version,
        }
        self.store.tell(self.name, time.time(), plain, seen)
        self._files.write()

    def _arm_changed(self, arm: Arm, why: str) -> None:
        logger.warning("switch: arm %s is %s (%s)", arm.name, "up" if arm.up else "down", why)
        self.count(f"{arm.name}_{'up' if arm.up else 'down'}")


def ensure_settings(store: SwitchStore, config: SwitchConfig) -> None:
    """The file's policy, where the state holds no settings yet."""
    if store.settings() is not None:
        return

    def first(before: Settings | None) -> tuple[Policy, bool] | None:
        return None if before is not None else (config.policy, False)

    store.change(
        first, what="policy", who="switch", why="the configuration file's", at_s=time.time()
    )
