"""The pool as a Ray actor: trials in other processes, on other nodes, lease from one place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.errors import DeploymentError
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.ports import Activated, Lease
from orchestrator.records import Arm
from orchestrator.run.pool import Pool, PoolCounts
from orchestrator.run.slots import SlotDevices

PoolEvent = tuple[str, str, float | None]
"""("starting" | "ready" | "failed", deployment's label, seconds or None)"""


MakeSlots = Callable[[], Sequence[SlotDevices]]


def on_this_node() -> NodeAffinitySchedulingStrategy:
    """Beside the driver: where the records are."""
    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


class PoolActor:
    """Runs inside the actor. Lease failures are returned, not raised: Ray wraps what is raised."""

    def __init__(
        self,
        make_slots: MakeSlots,
        *,
        in_turn: bool,
        warm_per_slot: int,
        start_timeout_s: float,
        coming: Sequence[Deployment],
    ) -> None:
        self._events: list[PoolEvent] = []
        self._events_lock = threading.Lock()
        self._pool = Pool(
            devices=make_slots(),
            in_turn=in_turn,
            warm_per_slot=warm_per_slot,
            start_timeout_s=start_timeout_s,
            coming=coming,
            on_start=self._note,
        )

    def _note(self, kind: str, deployment: Deployment, seconds: float | None) -> None:
        with self._events_lock:
            self._events.append((kind, deployment.label(), seconds))

    def lease(self, pair: DeploymentPair, holder: str) -> Lease | DeploymentError:
        try:
            return self._pool.lease(pair, holder=holder)
        except DeploymentError as error:
            return error

    def release(self, lease: Lease, broken: Sequence[Arm]) -> None:
        self._pool.release(lease, broken=broken)

    def activate(self, lease: Lease, arm: Arm) -> Activated | DeploymentError:
        try:
            return self._pool.activate(lease, arm)
        except DeploymentError as error:
            return error

    def broken_arms(self, lease: Lease) -> tuple[Arm, ...] | DeploymentError:
        try:
            return self._pool.broken_arms(lease)
        except DeploymentError as error:
            return error

    def autopsy(self, lease: Lease, arm: Arm) -> DeploymentError | None:
        return self._pool.autopsy(lease, arm)

    def reclaim(self, holder: str) -> None:
        self._pool.reclaim(holder)

    def counts(self) -> PoolCounts:
        return self._pool.counts()

    def drain_events(self) -> list[PoolEvent]:
        with self._events_lock:
            events, self._events = self._events, []
            return events

    def close(self) -> None:
        self._pool.close()


class RemotePool:
    """ports.PairProvider over the actor; picklable, used inside a trial."""

    def __init__(self, actor: Any, *, in_turn: bool = False) -> None:
        self._actor, self._in_turn = actor, in_turn

    def lease(self, pair: DeploymentPair, *, holder: str) -> Lease:
        answer: Lease | DeploymentError = ray.get(self._actor.lease.remote(pair, holder))
        if isinstance(answer, DeploymentError):
            raise answer
        return answer

    def release(self, lease: Lease, *, broken: Sequence[Arm] = ()) -> None:
        ray.get(self._actor.release.remote(lease, tuple(broken)))

    def activate(self, lease: Lease, arm: Arm) -> Activated:
        if not self._in_turn:
            return Activated(lease.endpoint(arm))
        answer: Activated | DeploymentError = ray.get(self._actor.activate.remote(lease, arm))
        if isinstance(answer, DeploymentError):
            raise answer
        return answer

    def broken_arms(self, lease: Lease) -> tuple[Arm, ...]:
        answer: tuple[Arm, ...] | DeploymentError = ray.get(self._actor.broken_arms.remote(lease))
        if isinstance(answer, DeploymentError):
            raise answer
        return answer

    def autopsy(self, lease: Lease, arm: Arm) -> DeploymentError | None:
        found: DeploymentError | None = ray.get(self._actor.autopsy.remote(lease, arm))
        return found


def start_pool(
    make_slots: MakeSlots,
    *,
    slots: int,
    in_turn: bool = False,
    warm_per_slot: int = 2,
    start_timeout_s: float = 600.0,
    coming: Sequence[Deployment] = (),
) -> Any:
    """Start the actor on this node and return its handle. Ray must be connected already.

    `make_slots` is called in the actor; `slots` is how many pairs there will be at once.
    """
    return (
        ray.remote(PoolActor)
        .options(
            num_cpus=0,
            max_concurrency=4 * slots + 8,
            max_restarts=0,
            scheduling_strategy=on_this_node(),
        )
        .remote(
            make_slots,
            in_turn=in_turn,
            warm_per_slot=warm_per_slot,
            start_timeout_s=start_timeout_s,
            coming=tuple(coming),
        )
    )
