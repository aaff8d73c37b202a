"""Warm deployments, leased to one trial at a time.

A *slot* is the place of one device pair. It keeps at most `warm_per_slot` engines and is leased
whole: two trials never measure on one device. A lease goes to the slot that already holds most of
what it needs, so engine starts = distinct deployments as long as trials come in the plan's order.
A slot whose devices are gone is given up; the others go on.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from orchestrator.errors import DeploymentError, DevicesLost
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.ports import Activated, Deployer, Lease, Sleeper
from orchestrator.records import ARMS, Arm, FailureClass
from orchestrator.run.slots import Slot, SlotDevices, Warm, slots_of

OnStart = Callable[[str, Deployment, float | None], None]
"""Called with ("starting" | "ready" | "failed", deployment, seconds since the order or None)."""


@dataclass(frozen=True)
class PoolCounts:
    """What the pool has done so far."""

    engine_starts: int
    failed_starts: int
    starting_s: float
    """Sum over starts of seconds from order to ready (starts may overlap)."""


class Pool:
    """Implements ports.PairProvider over Deployers; thread-safe.

    Either one deployer and a number of `slots`, or `devices`: a deployer for every place. With
    `in_turn` only one arm's engine is awake on a slot: `activate` puts the other to sleep, or stops
    it where it cannot sleep.
    """

    def __init__(
        self,
        deployer: Deployer | None = None,
        *,
        slots: int = 1,
        devices: Sequence[SlotDevices] = (),
        warm_per_slot: int = 2,
        in_turn: bool = False,
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
        if (deployer is None) == (not devices):
            raise ValueError("a pool needs either a deployer or `devices`, not both")
        self._given = tuple(devices) or (SlotDevices((deployer,)),) * slots  # type: ignore[arg-type]
        self._slots = slots_of(self._given, warm_per_slot)
        self._in_turn = in_turn
        self._start_timeout_s = start_timeout_s
        self._coming = {deployment.key: deployment for deployment in coming}
        self._on_start = on_start or (lambda *_: None)
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._leases: dict[str, tuple[Slot, DeploymentPair, str]] = {}
        self._failures: dict[str, DeploymentError] = {}
        self._ids = itertools.count(1)
        self._closed = False
        self._started: set[str] = set()
        self._starts, self._failed, self._starting_s = 0, 0, 0.0

    def lease(self, pair: DeploymentPair, *, holder: str) -> Lease:
        """Wait for a free slot, warm both arms on it, and hand it over.

        Raises: DeploymentError when an arm cannot be started; the same deployment is not tried
        again for another trial (its failure is remembered). DevicesLost when no devices are left.
        """
        self.reclaim(holder)  # a trial that is run again may still hold what its process left
        while True:
            slot = self._take_slot(pair, holder)
            began = self._monotonic()
            try:
                baseline, speculative = self._warm_both(slot, pair)
            except DevicesLost as error:
                self._lose(slot, error)
                continue
            except BaseException:
                self._free(slot)
                raise
            break
        lease_id = f"lease-{next(self._ids)}"
        with self._changed:
            self._leases[lease_id] = (slot, pair, holder)
        self._prepare_next(slot, pair)
        return Lease(
            id=lease_id,
            pair_key=pair.key,
            baseline=baseline.endpoint,
            speculative=speculative.endpoint,
            baseline_facts=baseline.facts,
            speculative_facts=speculative.facts,
            starting_s=self._monotonic() - began,
        )

    def activate(self, lease: Lease, arm: Arm) -> Activated:
        """Make `arm` the one that has the devices, where the arms take turns.

        Raises: DeploymentError when its engine cannot be started again.
        """
        held = self._leases.get(lease.id)
        if held is None or not self._in_turn:
            return Activated(lease.endpoint(arm))
        slot, pair, _ = held
        fresh = self._turn_to(slot, pair.of(arm))
        return Activated(slot.warm[pair.of(arm).key].endpoint, fresh)

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
        return tuple(arm for arm in ARMS if not self._is_healthy(slot, pair.of(arm).key))

    def autopsy(self, lease: Lease, arm: Arm) -> DeploymentError | None:
        held = self._leases.get(lease.id)
        if held is None:
            return None
        slot, pair, _ = held
        warm = slot.warm.get(pair.of(arm).key)
        return None if warm is None else slot.deployer(warm.deployment.key).autopsy(warm.name)

    def counts(self) -> PoolCounts:
        with self._changed:
            return PoolCounts(self._starts, self._failed, self._starting_s)

    def close(self) -> None:
        """Stop every engine. Later leases are refused."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        every = {id(one): one for slot in self._slots for one in slot.deployers}
        with ThreadPoolExecutor(max_workers=len(every)) as threads:
            list(threads.map(lambda one: one.close(), every.values()))

    def _take_slot(self, pair: DeploymentPair, holder: str) -> Slot:
        wanted = {pair.baseline.key, pair.speculative.key}
        with self._changed:
            while True:
                if self._closed:
                    raise DeploymentError(
                        FailureClass.START_FAILED, "the sweep is ending: no engine is started now"
                    )
                left = [slot for slot in self._slots if slot.lost is None]
                if not left:
                    raise self._slots[0].lost or DevicesLost(FailureClass.DEVICES_LOST, "none left")
                busy: set[str] = set()
                busy.update(*(slot.devices for slot in self._slots if slot.leased_to is not None))
                free = [slot for slot in left if not slot.devices & busy]
                if free:
                    slot = max(free, key=lambda s: (len(wanted & s.warm.keys()), -len(s.warm)))
                    slot.leased_to = holder
                    return slot
                self._changed.wait()

    def _free(self, slot: Slot) -> None:
        with self._changed:
            slot.leased_to = None
            self._changed.notify_all()

    def _lose(self, slot: Slot, error: DevicesLost) -> None:
        """Its node is gone, and its engines with it."""
        with self._changed:
            slot.lost = error
            slot.leased_to = None
            slot.warm.clear()
            self._changed.notify_all()

    def _warm_both(self, slot: Slot, pair: DeploymentPair) -> tuple[Warm, Warm]:
        """Start what is missing, all at once: nothing is being measured on this slot yet.

        Where there is room, the plan's next deployments are started along: the slot's device is
        idle now and will not be later.
        """
        if slot.preparing is not None:
            slot.preparing.exception()  # waits; one that failed is remembered
            slot.preparing = None
        both = (pair.baseline, pair.speculative)
        for deployment in both:
            failure = self._failures.get(deployment.key)
            if failure is not None:
                raise failure
            if deployment.key in slot.warm and not self._is_healthy(slot, deployment.key):
                self._drop(slot, deployment.key)
        if self._in_turn:
            return self._each_once(slot, pair)
        missing = {d.key: d for d in both if d.key not in slot.warm}
        self._make_room(slot, keep={d.key for d in both}, coming=len(missing))
        if missing:
            along = self._along(slot, missing.keys() | {d.key for d in both})
            ordered = [*missing.values(), *along]
            places = slot.free_places()
            with ThreadPoolExecutor(max_workers=len(ordered)) as threads:
                futures = [
                    threads.submit(self._start, slot, deployment, place)
                    for deployment, place in zip(ordered, places, strict=False)
                ]
            for start in futures[: len(missing)]:
                start.result()
            for other in futures[len(missing) :]:
                # One that fails is remembered, and told to the trial that needs it.
                error = other.exception()
                if error is not None and not isinstance(error, DeploymentError):
                    raise error
        for deployment in both:
            slot.warm[deployment.key] = slot.warm.pop(deployment.key)
        return slot.warm[pair.baseline.key], slot.warm[pair.speculative.key]

    def _each_once(self, slot: Slot, pair: DeploymentPair) -> tuple[Warm, Warm]:
        """Both arms have run, so that both are known to start; the baseline is awake."""
        found = {}
        for deployment in (pair.speculative, pair.baseline):
            self._turn_to(slot, deployment, keep={pair.baseline.key, pair.speculative.key})
            found[deployment.key] = slot.warm[deployment.key]
        return found[pair.baseline.key], found[pair.speculative.key]

    def _turn_to(self, slot: Slot, deployment: Deployment, keep: Set[str] = frozenset()) -> bool:
        """Only this engine is awake; True if it had to be started."""
        for key, other in list(slot.warm.items()):
            if key == deployment.key or other.asleep:
                continue
            deployer = slot.deployer(key)
            if isinstance(deployer, Sleeper) and deployer.can_sleep(other.name):
                deployer.sleep(other.name)
                other.asleep = True
            else:
                self._drop(slot, key)
        warm = slot.warm.get(deployment.key)
        if warm is None:
            self._make_room(slot, keep=keep | {deployment.key}, coming=1)
            self._start(slot, deployment, slot.free_places()[0])
            return True
        deployer = slot.deployer(deployment.key)
        if warm.asleep and isinstance(deployer, Sleeper):
            deployer.wake(warm.name)
            warm.asleep = False
        return False

    def _start(self, slot: Slot, deployment: Deployment, place: int) -> None:
        method = "baseline" if deployment.speculation is None else deployment.speculation.method
        method = method.replace("_", "-") + ("-again" if deployment.replica_of else "")
        name = f"{method}-{deployment.key[:6]}-{slot.index}"
        deployer = slot.deployers[place]
        self._on_start("starting", deployment, None)
        began = self._monotonic()
        try:
            endpoint = deployer.start(deployment, name=name, timeout_s=self._start_timeout_s)
            facts = deployer.facts(name)
        except DeploymentError as error:
            with self._changed:
                self._failed += 1
                if not isinstance(error, DevicesLost):
                    self._failures[deployment.key] = error
            self._on_start("failed", deployment, self._monotonic() - began)
            raise
        took = self._monotonic() - began
        with self._changed:
            self._starts += 1
            self._started.add(deployment.key)
            self._starting_s += took
            slot.warm[deployment.key] = Warm(deployment, name, endpoint, facts, place)
        self._on_start("ready", deployment, took)

    def _along(self, slot: Slot, needed: Set[str]) -> list[Deployment]:
        """The next deployments of the plan that still fit beside what is warm or needed."""
        with self._changed:
            room = slot.room - len(slot.warm.keys() | needed)
            return self._not_started(slot, needed)[: max(0, room)]

    def _not_started(self, slot: Slot, needed: Set[str]) -> list[Deployment]:
        known = slot.warm.keys() | needed | self._failures.keys() | self._started
        return [deployment for key, deployment in self._coming.items() if key not in known]

    def _prepare_next(self, slot: Slot, pair: DeploymentPair) -> None:
        """Start the plan's next engine on spare devices while this pair is measured.

        Only there: on the devices or cores of the pair it would disturb what is measured.
        """
        needed = {pair.baseline.key, pair.speculative.key}
        if not slot.has_spares or self._in_turn:
            return
        with self._changed:
            following = self._not_started(slot, needed)[:1]
        if not following:
            return
        self._make_room(slot, keep=needed, coming=1)
        places = slot.free_places()
        if places:
            slot.preparing = Future()
            arguments = (slot.preparing, slot, following[0], places[0])
            threading.Thread(target=self._prepare, args=arguments, daemon=True).start()

    def _prepare(self, done: Future[None], slot: Slot, deployment: Deployment, place: int) -> None:
        try:
            self._start(slot, deployment, place)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits for it
            done.set_exception(error)
        else:
            done.set_result(None)

    def _make_room(self, slot: Slot, *, keep: Set[str], coming: int) -> None:
        evictable = [key for key in slot.warm if key not in keep]
        while evictable and len(slot.warm) + coming > slot.room:
            self._drop(slot, evictable.pop(0))

    def _is_healthy(self, slot: Slot, key: str) -> bool:
        warm = slot.warm.get(key)
        if warm is None:
            return self._in_turn  # its turn is not now
        return warm.asleep or slot.deployer(key).healthy(warm.name)

    def _drop(self, slot: Slot, key: str) -> None:
        warm = slot.warm.get(key)
        if warm is not None:
            deployer = slot.deployer(key)
            del slot.warm[key]
            deployer.stop(warm.name)
