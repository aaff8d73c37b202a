"""Ray Tune walks the plan: one Tune trial per trial, as many at once as there are device pairs."""

from orchestrator.adapters.ray_tune.executor import RayTuneExecutor
from orchestrator.adapters.ray_tune.pool_actor import RemotePool, start_pool
from orchestrator.adapters.ray_tune.progress import drain_engine_events

__all__ = ["RayTuneExecutor", "RemotePool", "drain_engine_events", "start_pool"]
