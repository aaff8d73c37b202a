"""The simulated engine's HTTP server behind Ray Serve, in the place of vLLM's app."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from ray import serve

from orchestrator.adapters.simulated.configuration import configure
from orchestrator.adapters.simulated.server import SimulatedServer
from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.serving.app import FACTS_ROUTE
from orchestrator.serving.engine_log import EngineState, write_state
from orchestrator.serving.served_engine import ServedEngine, read_served_engine


class SimulatedApp:
    """Passes every request on to a simulated server in this process."""

    async def __init__(self, args: Mapping[str, Any]) -> None:  # type: ignore[misc] # Serve awaits
        served = read_served_engine(args)
        self._log = Path(str(served.log_path))
        configuration = replace(configure(_deployment(served)), served_name=served.model_name)
        simulated = SimulatedServer(configuration)
        runner = web.AppRunner(simulated.app(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self._origin, self._runner = f"http://127.0.0.1:{port}", runner
        self._session = aiohttp.ClientSession()
        self._facts = {
            "engine": "simulated",
            "engine_version": "test",
            "model": served.model_name,
            "pids": [os.getpid()],
            "host": socket.gethostname(),
            "seconds": {},
            "kv_capacity_tokens": None,
            "max_model_len": None,
            "max_num_seqs": None,
            "dtype": None,
            "simulated": True,
            "stages_unavailable": "simulated",
            "devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "given_devices": served.environment.get("CUDA_VISIBLE_DEVICES"),
        }
        with self._log.open("a") as log:
            log.write(f"devices {self._facts['given_devices']}\n")
        state = EngineState("ready", (os.getpid(),), socket.gethostname())
        write_state(self._log, state)

    def __serve_build_asgi_app__(self) -> Any:
        front = FastAPI()

        @front.get(FACTS_ROUTE)
        async def facts() -> dict[str, Any]:
            return self._facts

        @front.api_route("/{path:path}", methods=["GET", "POST"])
        async def forward(path: str, request: Request) -> StreamingResponse:
            answer = await self._session.request(
                request.method,
                f"{self._origin}/{path}",
                data=await request.body(),
                headers={"Content-Type": request.headers.get("content-type", "application/json")},
            )
            return StreamingResponse(
                answer.content.iter_any(),
                status_code=answer.status,
                headers={"Content-Type": answer.headers["Content-Type"]},
            )

        return front


def _deployment(served: ServedEngine) -> Deployment:
    speculation = served.speculation
    return Deployment(
        target=served.target,
        engine=served.engine,
        speculation=None
        if speculation is None
        else Speculation(speculation.method, speculation.speculation_length),
    )


def build(args: Mapping[str, Any]) -> serve.Application:
    served = read_served_engine(args)
    deployment = serve.deployment(
        name="engine",
        num_replicas=1,
        ray_actor_options=dict(served.ray_actor_options),
        max_ongoing_requests=512,
        health_check_period_s=2,
        graceful_shutdown_wait_loop_s=0.1,
        graceful_shutdown_timeout_s=2,
        max_constructor_retry_count=1,
    )(serve.ingress()(SimulatedApp))
    return deployment.bind(served.model_dump(mode="json"))
