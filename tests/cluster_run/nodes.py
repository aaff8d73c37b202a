"""Real Ray clusters on this machine: every node with a raylet and workers of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.adapters.ray_local import LOCAL_VARIABLES, free_port

ROOT = Path(__file__).resolve().parents[2]
AT_REST = {"RAY_AUTH_MODE": "disabled", **LOCAL_VARIABLES}


@contextmanager
def cluster_of(*nodes: dict[str, Any], head: dict[str, Any] | None = None) -> Iterator[Any]:
    """A head and `nodes`, as `ray.cluster_utils.Cluster`; this process does not connect to it."""
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ.update(AT_REST, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, **(head or {})},
    )
    try:
        for node in nodes:
            port = {"RAY_SERVE_WORKER_PROXY_HTTP_PORT": str(free_port())}
            cluster.add_node(**{"num_cpus": 1, "env_vars": port, **node})
        yield cluster
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)
