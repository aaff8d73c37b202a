"""A simulated engine behind Ray Serve, on a socket of its own, as a private vLLM replica is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web
from ray import serve

from orchestrator.adapters.simulated.configuration import configure
from orchestrator.adapters.simulated.server import SimulatedServer
from orchestrator.plan.deployment import Deployment


class SimulatedArm:
    async def __init__(self, deployment: Deployment, path: str) -> None:  # type: ignore[misc] # Serve awaits
        Path(path).unlink(missing_ok=True)  # of an arm that was killed
        app = SimulatedServer(configure(deployment)).app()
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.UnixSite(self._runner, path).start()

    async def __call__(self) -> None:
        """Asked through its socket only."""


def arm(deployment: Deployment, path: str) -> serve.Application:
    """Of one replica; Serve starts another when it dies."""
    options: dict[str, Any] = {
        "ray_actor_options": {"num_cpus": 0},
        "health_check_period_s": 1,
        "graceful_shutdown_timeout_s": 1,
    }
    return serve.deployment(**options)(SimulatedArm).bind(deployment, path)
