"""Warm deployments, leased to one trial at a time.

A *slot* is the place of one device pair. It keeps at most `warm_per_slot` engines and is leased
whole: two trials never measure on one device. A lease goes to the slot that already holds most of
what it needs, so engine starts = distinct deployments as long as trials come in the plan's order.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from orchestrator.errors import DeploymentError
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.ports import Deployer, Endpoint, Lease
from orchestrator.records import Arm, EngineFacts, FailureClass

OnStart = Callable[[str, Deployment, float | None], None]
"""Called with ("starting" | "ready" | "failed", deployment, seconds since the order or None)."""


@dataclass
class _Warm:
    deployment: Deployment
    name: str
    endpoint: Endpoint
    facts: EngineFacts


@dataclass
class _Slot:
    index: int
    leased_to: str | None = None
    warm: dict[str, _Warm] = field(default_factory=dict)
    """By deployment key, least recently used first."""


@dataclass(frozen=True)
class PoolCounts:
    """What the pool has done so far."""

    engine_starts: int
    failed_starts: int
    starting_s: float
    """Sum over starts of seconds from order to ready (starts may overlap)."""


class Pool:
    """Implements ports.PairProvider over a Deployer; thread-safe."""

    def __init__(
        self,
        deployer: Deployer,
        *,
        slots: int = 1,
        warm_per_slot: int = 2,
        start_timeout_s: float = 600.0,
        coming: Sequence[Deployment] = (),
        on_start: OnStart | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if slots < 1 or warm_per_slot < 2:
            raise ValueError(
                "a pool needs `slots >= 1` and `warm_per_slot >= 2` (the two arms), "
                f"but got slots={slots}, warm_per_slot={warm_per_slot}"
            )
        self._deployer = deployer
        self._slots = [_Slot(index) for index in range(slots)]
        self._warm_per_slot = warm_per_slot
        self._start_timeout_s = start_timeout_s
        self._coming = {deployment.key: deployment for deployment in coming}
        self._on_start = on_start or (lambda *_: None)
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._leases: dict[str, tuple[_Slot, DeploymentPair, str]] = {}
        self._failures: dict[str, DeploymentError] = {}
        self._ids = itertools.count(1)
        self._closed = False
        self._started: set[str] = set()
        self._starts, self._failed, self._starting_s = 0, 0, 0.0

    def lease(self, pair: DeploymentPair, *, holder: str) -> Lease:
        """Wait for a free slot, warm both arms on it, and hand it over.

        Raises: DeploymentError when an arm cannot be started; the same deployment is not tried
        again for another trial (its failure is remembered).
        """
        slot = self._take_slot(pair, holder)
        try:
            baseline, speculative = self._warm_both(slot, pair)
        except BaseException:
            self._free(slot)
            raise
        lease_id = f"lease-{next(self._ids)}"
        with self._changed:
            self._leases[lease_id] = (slot, pair, holder)
        return Lease(
            id=lease_id,
            pair_key=pair.key,
            baseline=baseline.endpoint,
            speculative=speculative.endpoint,
            baseline_facts=baseline.facts,
            speculative_facts=speculative.facts,
        )

    def release(self, lease: Lease, *, broken: Sequence[Arm] = ()) -> None:
        """Give the slot back. Engines named `broken` are stopped and never handed out again."""
        with self._changed:
            held = self._leases.pop(lease.id, None)
        if held is None:
            return
        slot, pair, _ = held
        try:
            for arm in broken:
                self._drop(slot, pair.of(arm).key)
        finally:
            self._free(slot)

    def reclaim(self, holder: str) -> None:
        """Take back what a trial that died still holds; its engines are checked before reuse."""
        with self._changed:
            orphans = [key for key, (_, _, who) in self._leases.items() if who == holder]
            slots = [self._leases.pop(key)[0] for key in orphans]
        for slot in slots:
            self._free(slot)

    def broken_arms(self, lease: Lease) -> tuple[Arm, ...]:
        held = self._leases.get(lease.id)
        if held is None:
            return ()
        slot, pair, _ = held
        arms: tuple[Arm, Arm] = ("baseline", "speculative")
        return tuple(arm for arm in arms if not self._is_healthy(slot, pair.of(arm).key))

    def autopsy(self, lease: Lease, arm: Arm) -> DeploymentError | None:
        held = self._leases.get(lease.id)
        if held is None:
            return None
        slot, pair, _ = held
        warm = slot.warm.get(pair.of(arm).key)
        return None if warm is None else self._deployer.autopsy(warm.name)

    def counts(self) -> PoolCounts:
        with self._changed:
            return PoolCounts(self._starts, self._failed, self._starting_s)

    def close(self) -> None:
        """Stop every engine. Later leases are refused."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._deployer.close()

    def _take_slot(self, pair: DeploymentPair, holder: str) -> _Slot:
        wanted = {pair.baseline.key, pair.speculative.key}
        with self._changed:
            while True:
                if self._closed:
                    raise DeploymentError(
                        FailureClass.START_FAILED, "the sweep is ending: no engine is started now"
                    )
                free = [slot for slot in self._slots if slot.leased_to is None]
                if free:
                    slot = max(free, key=lambda s: (len(wanted & s.warm.keys()), -len(s.warm)))
                    slot.leased_to = holder
                    return slot
                self._changed.wait()

    def _free(self, slot: _Slot) -> None:
        with self._changed:
            slot.leased_to = None
            self._changed.notify_all()

    def _warm_both(self, slot: _Slot, pair: DeploymentPair) -> tuple[_Warm, _Warm]:
        """Start what is missing, all at once: nothing is being measured on this slot yet.

        Where there is room, the plan's next deployments are started along: the slot's device is
        idle now and will not be later.
        """
        both = (pair.baseline, pair.speculative)
        for deployment in both:
            failure = self._failures.get(deployment.key)
            if failure is not None:
                raise failure
            if deployment.key in slot.warm and not self._is_healthy(slot, deployment.key):
                self._drop(slot, deployment.key)
        missing = {d.key: d for d in both if d.key not in slot.warm}
        self._make_room(slot, keep={d.key for d in both}, coming=len(missing))
        if missing:
            along = self._along(slot, missing.keys() | {d.key for d in both})
            with ThreadPoolExecutor(max_workers=len(missing) + len(along)) as threads:
                starts = [threads.submit(self._start, slot, d) for d in missing.values()]
                others = [threads.submit(self._start, slot, d) for d in along]
            for start in starts:
                start.result()
            for other in others:
                # One that fails is remembered, and told to the trial that needs it.
                error = other.exception()
                if error is not None and not isinstance(error, DeploymentError):
                    raise error
        for deployment in both:
            slot.warm[deployment.key] = slot.warm.pop(deployment.key)
        return slot.warm[pair.baseline.key], slot.warm[pair.speculative.key]

    def _start(self, slot: _Slot, deployment: Deployment) -> None:
        method = "baseline" if deployment.speculation is None else deployment.speculation.method
        method = method.replace("_", "-") + ("-again" if deployment.replica_of else "")
        name = f"{method}-{deployment.key[:6]}-{slot.index}"
        self._on_start("starting", deployment, None)
        began = self._monotonic()
        try:
            endpoint = self._deployer.start(deployment, name=name, timeout_s=self._start_timeout_s)
            facts = self._deployer.facts(name)
        except DeploymentError as error:
            with self._changed:
                self._failed += 1
                self._failures[deployment.key] = error
            self._on_start("failed", deployment, self._monotonic() - began)
            raise
        took = self._monotonic() - began
        with self._changed:
            self._starts += 1
            self._started.add(deployment.key)
            self._starting_s += took
            slot.warm[deployment.key] = _Warm(deployment, name, endpoint, facts)
        self._on_start("ready", deployment, took)

    def _along(self, slot: _Slot, needed: Set[str]) -> list[Deployment]:
        """The next deployments of the plan that still fit beside what is warm or needed."""
        with self._changed:
            known = slot.warm.keys() | needed | self._failures.keys() | self._started
            room = self._warm_per_slot - len(slot.warm.keys() | needed)
            waiting = [d for key, d in self._coming.items() if key not in known]
            return waiting[: max(0, room)]

    def _make_room(self, slot: _Slot, *, keep: set[str], coming: int) -> None:
        evictable = [key for key in slot.warm if key not in keep]
        while evictable and len(slot.warm) + coming > self._warm_per_slot:
            self._drop(slot, evictable.pop(0))

    def _is_healthy(self, slot: _Slot, key: str) -> bool:
        warm = slot.warm.get(key)
        return warm is not None and self._deployer.healthy(warm.name)

    def _drop(self, slot: _Slot, key: str) -> None:
        warm = slot.warm.pop(key, None)
        if warm is not None:
            self._deployer.stop(warm.name)
