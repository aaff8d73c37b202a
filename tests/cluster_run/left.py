"""What is left on a cluster: `python -m tests.cluster_run.left ADDRESS` prints it as JSON."""

from __future__ import annotations

import json
import sys

import ray
from ray._private.state import actors
from ray.util.placement_group import placement_group_table


def main(address: str) -> None:
    ray.init(address=address, log_to_driver=False)
    running = [one["ActorClassName"] for one in actors().values() if one["State"] == "ALIVE"]
    groups = [g for g in placement_group_table().values() if g["state"] != "REMOVED"]
    print(json.dumps({"actors": running, "groups": len(groups)}))


if __name__ == "__main__":
    main(sys.argv[1])
