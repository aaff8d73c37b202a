"""The pool's slots: where one pair is measured, and which engines are warm there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from orchestrator.errors import DeploymentError
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Deployer, Endpoint
from orchestrator.records import EngineFacts


@dataclass(frozen=True)
class SlotDevices:
    """Where one pair is measured, as the pool is told.

    `places` start engines on one set of devices each: two for arms with devices of their own, one
    where the arms share devices or take turns. On `spares`, devices that no pair measures on, the
    next engine is prepared while a pair is measured. Slots with a common entry in `devices` are
    never leased together.
    """

    places: tuple[Deployer, ...]
    spares: tuple[Deployer, ...] = ()
    devices: frozenset[str] = frozenset()


@dataclass
class Warm:
    """An engine that runs."""

    deployment: Deployment
    name: str
    endpoint: Endpoint
    facts: EngineFacts
    place: int
    asleep: bool = False


@dataclass
class Slot:
    """One slot's state; changed by whoever holds its lease, or under the pool's lock."""

    index: int
    deployers: tuple[Deployer, ...]
    devices: frozenset[str]
    per_place: int
    """Engines that a place keeps."""
    has_spares: bool = False
    leased_to: str | None = None
    lost: DeploymentError | None = None
    warm: dict[str, Warm] = field(default_factory=dict)
    """By deployment key, least recently used first."""
    preparing: Future[None] | None = None

    @property
    def room(self) -> int:
        return self.per_place * len(self.deployers)

    def deployer(self, key: str) -> Deployer:
        return self.deployers[self.warm[key].place]

    def free_places(self) -> list[int]:
        """One entry for each engine that could be started now, the emptiest place first."""
        counts = [0] * len(self.deployers)
        for warm in self.warm.values():
            counts[warm.place] += 1
        free = [
            (taken, place)
            for place, count in enumerate(counts)
            for taken in range(count, self.per_place)
        ]
        return [place for _, place in sorted(free)]


def slots_of(devices: Sequence[SlotDevices], warm_per_slot: int) -> list[Slot]:
    """One slot for each entry; `warm_per_slot` engines over the places that measure."""
    return [
        Slot(
            index=index,
            deployers=(*one.places, *one.spares),
            devices=one.devices or frozenset({f"slot {index}"}),
            per_place=max(1, warm_per_slot // len(one.places)),
            has_spares=bool(one.spares),
        )
        for index, one in enumerate(devices)
    ]
