"""Which devices a pair gets. Pure: from the cluster's nodes to slots that never share a device.

A *place* is where one engine runs; a *slot* is where one pair is measured: two places (separate)
or one (in_turn, shared). Every slot of a sweep has the same model of device, so cells compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from orchestrator.plan.facts import NodeFacts

Strategy = Literal["separate", "in_turn", "shared"]

CAVEATS: Mapping[str, str] = {
    "separate": "each arm keeps devices of its own, so a difference between two devices of one "
    "model counts as one between the arms; the A/A control shows how large it is",
    "in_turn": "the arms take turns on the same devices; after each turn an engine's caches are "
    "empty, so what a cache would bring over many requests is not in the figures",
    "shared": "both engines are loaded on the same devices and measured in turn: each has half of "
    "the memory, so its KV cache is smaller than it would be alone; the one that waits is idle",
}
"""What a reader of the figures has to know, by strategy."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one pair asks of the cluster."""

    strategy: Strategy
    gpus: int
    """Per engine; 0 = it runs on processors."""
    cpus: float | None = None
    """Per engine, where the file says."""
    accelerator: str | None = None
    across_nodes: bool = False
    """One engine may spread over nodes (`distributed_executor_backend: ray`)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one engine runs: (node, devices there) pairs, more than one only if it spreads."""

    parts: tuple[tuple[str, int], ...]
    cpus: float
    """Reserved with the devices, per part."""

    @property
    def node(self) -> str:
        return self.parts[0][0]

    def bundles(self, *, one_device_each: bool) -> list[tuple[str, dict[str, float]]]:
        """(node, resources) of its placement group. An engine whose workers are Ray actors takes
        one device a bundle; every other takes all of a node's in one."""
        found = []
        for node, count in self.parts:
            pieces = count if one_device_each and count else 1
            for _ in range(pieces):
                resources = {"CPU": self.cpus / pieces, "GPU": float(count / pieces)}
                found.append((node, {name: value for name, value in resources.items() if value}))
        return found


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one pair is measured. Two slots with a common entry in `devices` are never leased at
    the same time."""

    places: tuple[Place, ...]
    spares: tuple[Place, ...] = ()
    """Devices left over beside it: the next engine can be prepared there during a measurement."""
    devices: frozenset[str] = frozenset()

    @property
    def spans_nodes(self) -> bool:
        return len({node for place in self.places for node, _ in place.parts}) > 1


@dataclass(frozen=True)
class Layout:
    """All slots of a sweep."""

    slots: tuple[Slot, ...]
    model: str | None
    notes: tuple[str, ...] = field(default=())

    @property
    def at_once(self) -> int:
        """Pairs that can be measured at the same time.

        Formula: the largest number of slots without a common device; greedy, in order, which is
        exact here because slots are either disjoint or on the same machine.
        """
        taken: set[str] = set()
        count = 0
        for slot in self.slots:
            if not slot.devices & taken:
                taken |= slot.devices
                count += 1
        return count


def lay_out(nodes: Sequence[NodeFacts], need: Need) -> Layout:
    """The slots that fit, on the model of device that fits most of them.

    Undefined: no slots where nothing fits; `notes` say what was left out and why.
    """
    wanted = [node for node in nodes if _suits(node, need)]
    notes = []
    if need.accelerator and len(wanted) < len(nodes):
        notes.append(f"only nodes with {need.accelerator} are used (placement.accelerator)")
    by_model: dict[str, list[NodeFacts]] = {}
    for node in wanted:
        by_model.setdefault(node.model, []).append(node)
    laid = {model: _slots(group, need) for model, group in by_model.items()}
    if not any(laid.values()):
        return Layout((), None, tuple(notes))
    best = max(laid, key=lambda model: (len(laid[model]), model))
    others = sorted(model for model in laid if model != best)
    if others:
        notes.append(
            f"pairs run on {best} only: the arms of a pair, and cells that are compared, need one "
            f"model of device; left out: {', '.join(others)}"
        )
    layout = Layout(tuple(laid[best]), best)
    if layout.at_once < len(layout.slots):
        notes.append("nodes of one machine share its cores: only one of them measures at a time")
    if any(slot.spans_nodes for slot in layout.slots):
        notes.append(
            "some pairs span nodes: their load is sent from the head node, the network is inside "
            "the figures of both arms, and the devices are not watched during a block"
        )
    return replace(layout, notes=tuple(notes))


def _suits(node: NodeFacts, need: Need) -> bool:
    if need.gpus == 0:
        return node.gpus == 0 and node.cpus > 0
    named = need.accelerator is None or _plain(need.accelerator) in _plain(node.model)
    return node.gpus >= 1 and named


def _plain(name: str) -> str:
    """`NVIDIA H100 80GB HBM3` and Ray's `NVIDIA_H100_80G` both contain `h100`."""
    return "".join(character for character in name.lower() if character.isalnum())


def _slots(nodes: Sequence[NodeFacts], need: Need) -> list[Slot]:
    ordered = sorted(nodes, key=lambda node: (node.is_head, node.host, node.id))
    return _on_processors(ordered, need) if need.gpus == 0 else _on_gpus(ordered, need)


def _on_processors(nodes: Sequence[NodeFacts], need: Need) -> list[Slot]:
    """A node is the device. The head's only where there is no other."""
    used = [node for node in nodes if not node.is_head] or list(nodes)
    places = [
        (Place(((node.id, 0),), need.cpus or _engine_cpus(node.cpus)), _cores(node))
        for node in used
        if (need.cpus or 0.0) <= node.cpus
    ]
    if need.strategy != "separate":
        return [Slot((place,), devices=cores) for place, cores in places]
    slots = []
    while places:
        first, cores = places.pop(0)
        partner = next((i for i, (_, other) in enumerate(places) if not cores & other), None)
        if partner is not None:
            second, others = places.pop(partner)
            slots.append(Slot((first, second), devices=cores | others))
    return slots


def _engine_cpus(cpus: float) -> float:
    """One core is left to the front end, the gateway and the load generator."""
    return cpus - 1 if cpus >= 2 else cpus / 2


def _cores(node: NodeFacts) -> frozenset[str]:
    cores: Sequence[object] = node.cores or ("all",)
    return frozenset(f"{node.host}/core/{core}" for core in cores)


def _on_gpus(nodes: Sequence[NodeFacts], need: Need) -> list[Slot]:
    free = {node.id: int(node.gpus) for node in nodes}
    by_id = {node.id: node for node in nodes}
    together = 2 if need.strategy == "separate" else 1
    slots: list[list[Place]] = []
    for node in nodes:
        while free[node.id] >= together * need.gpus:
            free[node.id] -= together * need.gpus
            slots.append([_gpu_place(node, need)] * together)
    left = list(_whole_places(nodes, free, need))
    while len(left) >= together:
        slots.append([left.pop(0) for _ in range(together)])
    if need.across_nodes:
        if left and sum(free.values()) >= need.gpus:
            slots.append([left.pop(0), _spread(free, by_id, need)])
        while sum(free.values()) >= together * need.gpus:
            slots.append([_spread(free, by_id, need) for _ in range(together)])
    found = [
        Slot(tuple(places), devices=frozenset({f"slot {index}"}))
        for index, places in enumerate(slots)
    ]
    for spare in left:  # at most one: the arm that found no partner
        nodes_of = [slot.places[0].node for slot in found]
        beside = nodes_of.index(spare.node) if spare.node in nodes_of else None
        if beside is not None:
            found[beside] = replace(found[beside], spares=(spare,))
    return found


def _whole_places(nodes: Sequence[NodeFacts], free: dict[str, int], need: Need) -> Iterator[Place]:
    for node in nodes:
        while free[node.id] >= need.gpus:
            free[node.id] -= need.gpus
            yield _gpu_place(node, need)


def _gpu_place(node: NodeFacts, need: Need) -> Place:
    return Place(((node.id, need.gpus),), _cpus_beside(node, need.gpus, need.cpus))


def _cpus_beside(node: NodeFacts, gpus: int, asked: float | None) -> float:
    """One for each device where every device can have one and the load generator another."""
    if asked is not None:
        return asked
    return float(gpus) if node.cpus > node.gpus else 0.0


def _spread(free: dict[str, int], nodes: Mapping[str, NodeFacts], need: Need) -> Place:
    """One engine over as few nodes as it takes, the emptiest first."""
    parts, missing = [], need.gpus
    for name in sorted(free, key=lambda name: -free[name]):
        taken = min(free[name], missing)
        if taken:
            free[name] -= taken
            missing -= taken
            parts.append((name, taken))
    cpus = min(_cpus_beside(nodes[name], count, need.cpus) for name, count in parts)
    return Place(tuple(parts), cpus)


def strategy_of(asked: Strategy | None, *, on_cpu: bool) -> Strategy:
    """Formula: what the file says; else shared on a CPU, separate on GPUs."""
    return asked or ("shared" if on_cpu else "separate")


def spreads(engine: Mapping[str, Any]) -> bool:
    """Whether the engine's workers may be on several nodes."""
    return bool(engine.get("distributed_executor_backend") == "ray")


def whole_devices(gpus: float) -> int:
    """Devices that a replica's share of GPUs takes up: half of one is that one."""
    return math.ceil(gpus)
