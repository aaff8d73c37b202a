"""The product's own way to engines, with a light engine at its end.

Serve, the pool, Tune, the load generator, the state file, the log and the classes of failures are
the real ones; only what vLLM would do is done by `tests.survival.engine`, a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from ray import serve

from orchestrator.adapters.ray_serve import RayServeDeployer
from orchestrator.serving import app
from orchestrator.serving.app import FACTS_ROUTE, VllmApp
from orchestrator.serving.served_engine import ServedEngine, read_served_engine

PLANTED = "planted"
"""Engine argument: a file that says by speculation length what becomes of the engine."""


class Engine:
    """The engine's process, as the replica holds it."""

    def __init__(self, served: ServedEngine) -> None:
        length = served.speculation.speculation_length if served.speculation else 0
        planted = json.loads(Path(served.engine[PLANTED]).read_text()).get(str(length), "")
        method = served.speculation.method if served.speculation else None
        config = {
            "target": served.model_name,
            "engine": {"simulated": {"profile": "fast", "target_fixed_s": 0.01, "start_s": 0}},
            "speculation": method and {"method": method, "speculation_length": length},
        }
        self._folder = tempfile.TemporaryDirectory(prefix="stand-in-")
        self._port_file = Path(self._folder.name) / "port"
        command = [sys.executable, "-m", "tests.survival.engine", json.dumps(config)]
        self.process = subprocess.Popen([*command, str(self._port_file), planted])

    async def origin(self) -> str:
        """Where it answers. Raises: RuntimeError when it ends instead."""
        while True:
            with contextlib.suppress(OSError, ValueError):
                return f"http://127.0.0.1:{json.loads(self._port_file.read_text())}"
            self.refuse_dead("during its start")
            await asyncio.sleep(0.05)

    def refuse_dead(self, when: str) -> None:
        status = self.process.poll()
        if status is not None:
            raise RuntimeError(f"Engine core initialization failed {when}: {status}")

    def shutdown(self) -> None:
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()


class StandInApp(VllmApp):
    """The product's replica, with a process of ours instead of vLLM's."""

    async def _start(self) -> None:
        self._report("loading")
        self._engine = Engine(self._served)
        self._report("loading", pids=self._pids())
        self._origin = await self._engine.origin()
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        self._app = self._front()

    def _front(self) -> FastAPI:
        front = FastAPI()
        front.add_api_route(FACTS_ROUTE, self._facts, methods=["GET"])

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

    async def check_health(self) -> None:
        self._engine.refuse_dead("while it served")

    async def _facts(self) -> dict[str, Any]:
        return {
            "engine": "simulated",
            "engine_version": "stand-in",
            "model": self._served.model_name,
            "pids": self._pids(),
            "host": socket.gethostname(),
            "seconds": {},
            "kv_capacity_tokens": None,
            "max_model_len": None,
            "max_num_seqs": None,
            "dtype": None,
            "simulated": True,
            "stages_unavailable": "a stand-in has no stages",
            "can_sleep": False,
        }

    def _pids(self) -> tuple[int, ...]:
        return (os.getpid(), *([self._engine.process.pid] if self._engine else []))


def build(args: Mapping[str, Any]) -> serve.Application:
    """In the place of `orchestrator.serving.app.build`."""
    served = read_served_engine(args)
    deployment = serve.deployment(
        name=app.DEPLOYMENT_NAME,
        num_replicas=1,
        ray_actor_options={"num_cpus": 0, "num_gpus": 0, **served.ray_actor_options},
        max_ongoing_requests=64,
        max_constructor_retry_count=1,
        health_check_period_s=1,
        graceful_shutdown_wait_loop_s=0.1,
        graceful_shutdown_timeout_s=2,
    )(serve.ingress()(StandInApp))
    return deployment.bind(served.model_dump(mode="json"))


def deployer(logs: Path) -> RayServeDeployer:
    """One that starts stand-ins; no template of vLLM is wanted then."""
    return RayServeDeployer(logs, build=build)
