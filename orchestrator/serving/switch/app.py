"""The switch as a Ray Serve application: replicas of the ingress, and one keeper.

`build` is the application builder that `serve_configs/canary.yaml` names. The keeper is a
deployment of its own: what it computes never stands in a request's way, and when it dies Serve
starts another, which goes on from the state folder. Replicas run without it, on the baseline after
`health.keeper_silent_s`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from ray import serve

from orchestrator.serving.switch.admin import AdminApp, operators_of
from orchestrator.serving.switch.board import Board
from orchestrator.serving.switch.ingress import Ingress
from orchestrator.serving.switch.keeper import Keeper
from orchestrator.switch.config import SwitchConfig, switch_config
from orchestrator.switch.guard import LiveGuard
from orchestrator.switch.guarding import Guard, Permissive

INGRESS, KEEPER = "switch", "keeper"
HEAD = {"node:__internal_head__": 0.001}
"""All of a switch runs on one machine, the one with the state folder: Ray's head."""

logger = logging.getLogger("ray.serve")


class SwitchIngress:
    async def __init__(self, args: Mapping[str, Any], _keeper: Any) -> None:  # type: ignore[misc] # Serve awaits
        self._board = Board(switch_config(args))
        await self._board.open()
        self._ingress = Ingress(self._board)

    def __serve_build_asgi_app__(self) -> Any:
        return self._ingress

    async def __del__(self) -> None:
        if hasattr(self, "_board"):
            await self._board.close()


class SwitchKeeper:
    async def __init__(self, args: Mapping[str, Any]) -> None:  # type: ignore[misc] # Serve awaits
        config = switch_config(args)
        self._keeper = Keeper(config, guard_of(config))
        self._runner = web.AppRunner(
            AdminApp(self._keeper, operators_of(config)).app(), access_log=None
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, config.admin.host, config.admin.port)
        await site.start()
        self._running = asyncio.create_task(self._keeper.run())

    async def check_health(self) -> None:
        """Raises when it no longer judges: Serve then starts another."""
        if self._running.done():
            self._running.result()

    async def __call__(self) -> None:
        """The keeper is talked to through the state folder and the admin API."""


def placed(config: SwitchConfig) -> SwitchConfig:
    """With the state folder's whole path."""
    return config.model_copy(update={"state": str(Path(config.state).expanduser())})


def guard_of(config: SwitchConfig) -> Guard:
    if config.guard is None or not config.guard.enabled:
        return Permissive()
    return LiveGuard(config.guard)


def build(args: Mapping[str, Any]) -> serve.Application:
    """Raises: pydantic.ValidationError naming every fault in `args`."""
    config = placed(switch_config(dict(args)))
    plain = config.model_dump(mode="json")
    common: dict[str, Any] = {
        "health_check_period_s": 2,
        "health_check_timeout_s": 10,
        "graceful_shutdown_wait_loop_s": 0.1,
        "max_constructor_retry_count": 3,
        "logging_config": {"enable_access_log": False, "log_level": "WARNING"},
        "ray_actor_options": {**config.ray_actor_options, "resources": HEAD},
    }
    keeper = serve.deployment(name=KEEPER, num_replicas=1, graceful_shutdown_timeout_s=2, **common)(
        SwitchKeeper
    )
    ingress = serve.deployment(
        name=INGRESS,
        num_replicas=config.replicas,
        max_ongoing_requests=config.limits.in_flight * 2,
        # A replica that is taken down lets its requests end first.
        graceful_shutdown_timeout_s=60,
        **common,
    )(serve.ingress()(SwitchIngress))
    return ingress.bind(plain, keeper.bind(plain))
