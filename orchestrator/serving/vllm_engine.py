"""Starting vLLM inside a replica. Importing this module imports vLLM: import it late."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import vllm
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.api_server.app_state import init_app_state
from vllm.entrypoints.launchers.app import build_app
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.entrypoints.openai.models.protocol import LoRAModulePath
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.engine import utils as engine_processes
from vllm.v1.engine.async_llm import AsyncLLM

from orchestrator.serving.engine_arguments import (
    FRONTEND,
    OWN,
    check_engine_arguments,
    head_method,
    worker_extension,
)
from orchestrator.serving.environment import allowed_cpus, compute_cpus
from orchestrator.serving.replica_server import ReplicaServer
from orchestrator.serving.served_engine import ServedEngine
from orchestrator.serving.template import TemplateContext
from orchestrator.serving.what_if import SETTINGS

logger = logging.getLogger(__name__)


async def start(
    served: ServedEngine,
    *,
    target_path: str,
    draft_path: str | None,
    template_address: str | None,
    log_path: Path | None,
) -> tuple[Any, AsyncLLM]:
    """Starts the engine and builds vLLM's app around it.

    Raises: BadEngineArgument, and whatever vLLM raises.
    """
    arguments = engine_arguments(served, target_path, draft_path, template_address is not None)
    with processes_from(template_address, log_path):
        engine = _engine(arguments, served.placement_group)
    try:
        tasks = await engine.get_supported_tasks()
        options = front_end_options(arguments, served)
        app = build_app(options, tasks, engine.model_config)
        await init_app_state(engine, app.state, options, tasks)
        app.state.server = ReplicaServer()
    except BaseException:
        engine.shutdown()
        raise
    return app, engine


def _engine(arguments: AsyncEngineArgs, group: str | None) -> AsyncLLM:
    """With a placement group, its workers take that group's devices, on whatever nodes they are.

    vLLM finds a group by itself only if the replica runs inside it.
    """
    if group is None:
        return AsyncLLM.from_engine_args(arguments)
    from ray._raylet import PlacementGroupID
    from ray.util.placement_group import PlacementGroup

    config = arguments.create_engine_config(UsageContext.ENGINE_CONTEXT)
    config.parallel_config.placement_group = PlacementGroup(PlacementGroupID(bytes.fromhex(group)))
    return AsyncLLM.from_vllm_config(
        config,
        enable_log_requests=arguments.enable_log_requests,
        disable_log_stats=arguments.disable_log_stats,
    )


def engine_arguments(
    served: ServedEngine, target_path: str, draft_path: str | None, in_one_process: bool
) -> AsyncEngineArgs:
    """vLLM's engine arguments; names are checked first, so that a misspelt one says so."""
    known = [field.name for field in dataclasses.fields(AsyncEngineArgs)]
    check_engine_arguments(served.engine, known, os.environ)
    ours = (*FRONTEND, *OWN)
    given = {name: value for name, value in served.engine.items() if name not in ours}
    supposes = served.supposes
    extension = worker_extension(times_stages=served.times_stages, supposes=supposes is not None)
    if extension is not None:
        given["worker_extension_cls"] = extension
    if supposes is not None:
        given["additional_config"] = {**given.get("additional_config", {}), SETTINGS: supposes}
    if in_one_process:
        given["distributed_executor_backend"] = "uni"
    speculative_config = served.speculative_config()
    if speculative_config is not None and draft_path is not None:
        speculative_config["model"] = draft_path
        config = Path(draft_path) / "config.json"
        if config.is_file():
            head = json.loads(config.read_text(encoding="utf-8"))
            speculative_config["method"] = head_method(speculative_config["method"], head)
    return AsyncEngineArgs(
        model=target_path,
        served_model_name=[served.model_name],
        speculative_config=speculative_config,
        **given,
    )


def front_end_options(arguments: AsyncEngineArgs, served: ServedEngine) -> Namespace:
    """The namespace that vLLM's `build_app` reads: its defaults, our engine arguments over them."""
    options: Namespace = make_arg_parser(FlexibleArgumentParser()).parse_args([])
    for field in dataclasses.fields(arguments):
        setattr(options, field.name, getattr(arguments, field.name))
    for name in FRONTEND:
        if name in served.engine:
            setattr(options, name, served.engine[name])
    modules = served.engine.get("lora_modules")
    if modules is not None:
        options.lora_modules = [LoRAModulePath(**module) for module in modules]
    options.served_model_name = [served.model_name]
    return options


@contextlib.contextmanager
def processes_from(template_address: str | None, log_path: Path | None) -> Iterator[None]:
    """Makes vLLM take its engine process from the template while this context lasts."""
    if template_address is None or not hasattr(engine_processes, "get_mp_context"):
        yield
        return
    original = engine_processes.get_mp_context
    cpus = compute_cpus(allowed_cpus())
    context = TemplateContext(template_address, log_path, cpus)
    engine_processes.get_mp_context = lambda: context
    try:
        yield
    finally:
        engine_processes.get_mp_context = original


async def time_stages(engine: Any, served: ServedEngine) -> str | None:
    """Begin to time the stages of the engine's steps. Returns why not, or None when it does."""
    if not served.times_stages:
        asked = served.engine.get("stage_times", True)
        return "worker_extension_cls is taken" if asked else "turned off (engine.stage_times)"
    for reason in await engine.collective_rpc("orchestrator_time_stages"):
        if reason is not None:
            return str(reason)
    return None


async def stages(engine: Any) -> dict[str, Any]:
    """Cumulative sums of every worker, rank 0 first; see `stage_timer.ROW`."""
    from orchestrator.serving.stage_timer import ROW

    return {"columns": ROW, "workers": await engine.collective_rpc("orchestrator_stages")}


async def learn(engine: Any, recorded: list[list[list[int]]]) -> int:
    """Hands (prompt, answer) pairs to the proposer of a what-if; returns how many it has."""
    return int((await engine.collective_rpc("orchestrator_learn", args=(recorded,)))[0])


def engine_pids(engine: Any) -> tuple[int, ...]:
    """Processes of the engine besides this one."""
    if engine is None:
        return ()
    import psutil

    manager = engine.engine_core.resources.engine_manager
    own = [process.pid for process in getattr(manager, "processes", ()) if process.pid]
    found = dict.fromkeys(own)
    for pid in own:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.update(
                dict.fromkeys(child.pid for child in psutil.Process(pid).children(recursive=True))
            )
    return tuple(found)


def facts(engine: Any) -> dict[str, Any]:
    """What the engine says of itself; None where it does not say."""
    cache = engine.vllm_config.cache_config
    blocks, size = cache.num_gpu_blocks, cache.block_size
    return {
        "engine": "vllm",
        "engine_version": vllm.__version__,
        "kv_capacity_tokens": blocks * size if blocks and size else None,
        "max_model_len": engine.model_config.max_model_len,
        "dtype": str(engine.model_config.dtype).removeprefix("torch."),
        "can_sleep": bool(engine.model_config.enable_sleep_mode),
        "max_num_seqs": engine.vllm_config.scheduler_config.max_num_seqs,
    }
