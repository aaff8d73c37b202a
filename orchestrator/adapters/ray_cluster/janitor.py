"""Takes down what a sweep's driver left on a cluster of others when it was killed.

Actors and placement groups end with the driver; Serve applications do not. The janitor is an actor
that outlives the driver by as long as that takes, and then ends itself.
"""

from __future__ import annotations

import time
from typing import Any

import ray
from ray import serve

from orchestrator.adapters.node_work import NodeWork
from orchestrator.adapters.serve_application import applications, take_down

EVERY_S = 3.0
_ANSWER_S = 60.0


class Janitor:
    """Inside the actor."""

    def __init__(self, pool: Any, prefix: str, serve_started: bool) -> None:
        self._pool, self._prefix, self._serve_started = pool, prefix, serve_started

    def watch(self) -> None:
        """Returns never: it ends with the pool, which ends with the driver."""
        while self._pool_lives():
            time.sleep(EVERY_S)
        leave_serve(self._prefix, started_here=self._serve_started)
        ray.actor.exit_actor()

    def _pool_lives(self) -> bool:
        try:
            ray.get(self._pool.counts.remote(), timeout=_ANSWER_S)
        except ray.exceptions.GetTimeoutError:
            return True  # it is busy; a pool that is gone is told as gone
        except ray.exceptions.RayError:
            return False
        return True


def start_janitor(pool: Any, prefix: str, *, serve_started: bool) -> Any:
    """The actor. An orderly end of the sweep kills it first."""
    actor = (
        ray.remote(Janitor)
        .options(
            name=f"janitor of {prefix} {time.time():.0f}",
            lifetime="detached",
            num_cpus=0,
            num_gpus=0,
            max_restarts=0,
        )
        .remote(pool, prefix, serve_started)
    )
    actor.watch.remote()
    return actor


def leave_serve(prefix: str, *, started_here: bool) -> None:
    """Takes a sweep's applications down; and Serve, where the sweep started it and nobody else has
    an application there by now."""
    take_down_all(prefix)
    if started_here and not applications():
        serve.shutdown()


def take_down_all(prefix: str) -> None:
    """The applications whose names begin so. Nobody else uses the prefix: one process at a time
    runs a sweep."""
    for name in applications():
        if name.startswith(prefix):
            take_down(name, NodeWork(), frozenset())
