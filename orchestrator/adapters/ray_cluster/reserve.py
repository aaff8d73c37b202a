"""Devices are reserved by placement groups: no other job, and no other sweep, is given them.

An engine that runs in one process gets its devices by number (`CUDA_VISIBLE_DEVICES`) on the node
of its group: both arms can then share them or take turns, which two actors with a claim of their
own could not. An engine whose workers are Ray actors is given the group itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from orchestrator.errors import DeploymentError
from orchestrator.plan.placing import Place
from orchestrator.records import FailureClass

NODE_LABEL = "ray.io/node-id"
READY_S = 60.0


@dataclass(frozen=True)
class EnginePlace:
    """Where one engine is to run. Picklable."""

    node: str
    devices: str | None = None
    """`CUDA_VISIBLE_DEVICES`; None: it has none, or its workers are placed by Ray."""
    group: str | None = None
    """Placement group for its workers, by id."""

    @property
    def actor_options(self) -> dict[str, object]:
        """The replica itself claims nothing: the group has claimed it."""
        return {"num_cpus": 0, "num_gpus": 0, "label_selector": {NODE_LABEL: self.node}}


@dataclass(frozen=True)
class Reserved:
    place: EnginePlace
    group: PlacementGroup

    def release(self) -> None:
        remove_placement_group(self.group)


def reserve(place: Place, *, workers_are_actors: bool) -> Reserved:
    """Raises: DeploymentError when the devices are not free within a minute."""
    bundles = place.bundles(one_device_each=workers_are_actors)
    group = placement_group(
        [resources for _, resources in bundles],
        strategy="PACK",
        bundle_label_selector=[{NODE_LABEL: node} for node, _ in bundles],
    )
    try:
        ray.get(group.ready(), timeout=READY_S)
    except ray.exceptions.GetTimeoutError:
        remove_placement_group(group)
        raise DeploymentError(
            FailureClass.START_TIMEOUT.value,
            f"{bundles} were not free within {READY_S:g} s: another job or sweep on this cluster "
            "holds them (`ray status` says what is taken); wait for it, or end it",
        ) from None
    if workers_are_actors:
        return Reserved(EnginePlace(place.node, group=group.id.hex()), group)
    gpus = sum(count for _, count in place.parts)
    devices = _numbers(group, gpus) if gpus else None
    return Reserved(EnginePlace(place.node, devices=devices), group)


def _numbers(group: PlacementGroup, gpus: int) -> str:
    """The group's devices as processes on its node name them; they are its for good."""
    within = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0)
    task = ray.remote(_visible_devices).options(
        num_cpus=0, num_gpus=gpus, scheduling_strategy=within
    )
    return str(ray.get(task.remote()))


def _visible_devices() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, ray.get_gpu_ids()))
