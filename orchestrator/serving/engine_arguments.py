"""From a served engine to the engine arguments and the devices of one replica. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.serving.served_engine import ServedEngine
from orchestrator.spec.nearest import nearest

REMOTE_CODE_VARIABLE = "ORCHESTRATOR_ALLOW_REMOTE_CODE"

OURS = {
    "model": "target",
    "speculative_config": "speculation",
    "served_model_name": "served_model_name",
}
"""Engine arguments that have a key of their own in `args`."""

FRONTEND = (
    "chat_template",
    "chat_template_content_format",
    "default_chat_template_kwargs",
    "enable_auto_tool_choice",
    "enable_prompt_tokens_details",
    "lora_modules",
    "response_role",
    "return_tokens_as_token_ids",
    "tool_call_parser",
)
"""Arguments of vLLM's HTTP front end that may stand among the engine arguments."""


OWN = ("stage_times",)
"""Arguments of this product that may stand among the engine arguments.

`stage_times` (default true): time the stages of every engine step (`serving.stage_timer`).
"""
STAGE_TIMER = "orchestrator.serving.stage_timer.StageTimerExtension"
WHAT_IF = "orchestrator.serving.what_if.WhatIfExtension"
BOTH = "orchestrator.serving.extensions.TimedWhatIfExtension"


def worker_extension(*, times_stages: bool, supposes: bool) -> str | None:
    """The class that vLLM mixes into its workers: it takes one only."""
    if times_stages and supposes:
        return BOTH
    return STAGE_TIMER if times_stages else WHAT_IF if supposes else None


def head_method(method: str, config: Mapping[str, Any] | None) -> str:
    """vLLM's method for an EAGLE head, by what its configuration says it is.

    `eagle` is the family: heads that read several layers of the target are served as `eagle3`.
    """
    if method != "eagle" or config is None:
        return method
    architectures = config.get("architectures") or []
    third = any("Eagle3" in str(name) for name in architectures)
    return "eagle3" if third or config.get("eagle_aux_hidden_state_layer_ids") else method


class BadEngineArgument(ValueError):
    """An engine argument is unknown or not allowed; the message is the cause in one line."""


def check_engine_arguments(
    engine: Mapping[str, Any], known: Iterable[str], environ: Mapping[str, str]
) -> None:
    """Checks names (not values: the engine does that) and that no remote code is let in unasked.

    Raises: BadEngineArgument
    """
    names = set(known)
    for name, value in engine.items():
        if name in OURS:
            raise BadEngineArgument(
                f"engine.{name}: give it as {OURS[name]!r}, not among the engine arguments"
            )
        if name not in names and name not in FRONTEND and name not in OWN:
            hint = nearest(name, names | set(FRONTEND) | set(OWN))
            advice = f"did you mean {hint!r}?" if hint else "see `vllm serve --help`"
            raise BadEngineArgument(f"engine.{name}: not an engine argument of vLLM; {advice}")
        if name == "trust_remote_code" and value and environ.get(REMOTE_CODE_VARIABLE) != "1":
            raise BadEngineArgument(
                "engine.trust_remote_code: a model's own code is not run unless "
                f"{REMOTE_CODE_VARIABLE}=1 is set where the engine starts"
            )


@dataclass(frozen=True)
class Placement:
    """Devices of one replica."""

    actor_options: Mapping[str, Any]
    bundles: tuple[Mapping[str, float], ...] | None = None
    """A placement group for engines whose workers are Ray actors of their own."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> float:
        own = float(self.actor_options.get("num_gpus", 0))
        return own + sum(bundle.get("GPU", 0) for bundle in self.bundles or ())


def placement(served: ServedEngine, *, accelerators: bool) -> Placement:
    """Where one replica runs.

    `accelerators` says whether engines run on GPUs here. An engine of n devices takes n GPUs in its
    one actor (executor `mp`), or n bundles of one GPU (executor `ray`), unless a placement group
    made for it is given. `num_gpus` is always explicit: an actor without it would see every device
    of the host.
    """
    engine = served.engine
    devices = int(engine.get("tensor_parallel_size", 1)) * int(
        engine.get("pipeline_parallel_size", 1)
    )
    devices *= int(engine.get("data_parallel_size", 1))
    options = dict(served.ray_actor_options)
    options.setdefault("num_cpus", 0)
    if not accelerators:
        options.setdefault("num_gpus", 0)
        return Placement(options)
    if engine.get("distributed_executor_backend") == "ray" and served.placement_group is None:
        options["num_gpus"] = 0
        front = {"CPU": float(options["num_cpus"]) or 1.0}
        options["num_cpus"] = front["CPU"]
        return Placement(options, bundles=(front, *({"GPU": 1.0, "CPU": 1.0},) * devices))
    options.setdefault("num_gpus", devices)
    return Placement(options)
