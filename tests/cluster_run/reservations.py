"""Reserves devices on a cluster of fake GPUs, and prints what was given, as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import ray
from ray._raylet import PlacementGroupID
from ray.util.placement_group import PlacementGroup, placement_group_table

from orchestrator.adapters.ray_cluster.reserve import reserve
from orchestrator.cli.machine_room import join
from orchestrator.errors import DeploymentError
from orchestrator.plan.placing import Need, lay_out

reserving = sys.modules[reserve.__module__]


def main(address: str) -> None:
    joined = join(address)
    found = [asdict(node) for node in joined.facts.nodes]
    nodes = joined.facts.nodes
    told: dict[str, object] = {"nodes": found, "head": joined.nodes.head}

    separate = lay_out(nodes, Need("separate", 1, accelerator="H100"))
    arms = [reserve(place, workers_are_actors=False) for place in separate.slots[0].places]
    told["separate"] = [asdict(arm.place) for arm in arms]
    shared = lay_out(nodes, Need("shared", 2, accelerator="H100"))
    try:
        reserving.READY_S = 3.0
        reserve(shared.slots[0].places[0], workers_are_actors=False)
    except DeploymentError as error:
        told["taken"] = error.cause
    for arm in arms:
        arm.release()
    both = reserve(shared.slots[0].places[0], workers_are_actors=False)
    told["shared"] = asdict(both.place)
    both.release()

    over = lay_out(nodes, Need("shared", 4, accelerator="H100", across_nodes=True))
    spread = reserve(over.slots[0].places[0], workers_are_actors=True)
    group = PlacementGroup(PlacementGroupID(bytes.fromhex(str(spread.place.group))))
    table = placement_group_table(group)
    told["spread"] = {
        "bundles": group.bundle_specs,
        "nodes": sorted(table["bundles_to_node_id"].values()),
        "place": asdict(spread.place),
    }
    spread.release()
    joined.close()
    print(json.dumps(told))
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
