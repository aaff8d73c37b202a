"""The arguments of one served engine, as `build(args)` and the Serve YAML files take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.plan.deployment import WHAT_IF, Deployment, Speculation
from orchestrator.serving.what_if import PROPOSER
from orchestrator.spec.nearest import nearest

SPECULATION_KEYS = ("method", "speculation_length", "draft", "options")


class ServedSpeculation(BaseModel):
    """One way to speculate. Any further key is a field of vLLM's `speculative_config`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    method: str = Field(min_length=1)
    speculation_length: int = Field(ge=1)
    draft: str | None = None


class ServedEngine(BaseModel):
    """What one replica serves: everything that `build` needs, nothing that is found out later."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = Field(min_length=1)
    """Catalogue name, Hugging Face id, or path."""
    served_model_name: str | None = None
    """Name clients use in `model`; None = the target's short name."""
    engine: dict[str, Any] = Field(default_factory=dict)
    speculation: ServedSpeculation | None = None
    ray_actor_options: dict[str, Any] = Field(default_factory=dict)
    placement_group: str | None = None
    """Id of the placement group whose devices its workers take (executor `ray`)."""
    max_ongoing_requests: int = Field(default=4096, ge=1)
    log_path: str | None = None
    """Where the engine's stdout and stderr go; None = Ray's own log files."""
    direct: str | None = Field(default=None, pattern=r"^(/|~/)")
    """A Unix socket of its own, which only its user can open: what a switch on the same machine
    goes to. `~` is the home. With `route_prefix: null` nothing else leads to the engine."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the replica and its engine processes."""

    @property
    def model_name(self) -> str:
        return self.served_model_name or short_name(self.target)

    @property
    def times_stages(self) -> bool:
        """Whether engine steps are timed; a worker extension of the user's own is kept."""
        asked = bool(self.engine.get("stage_times", True))
        return asked and not self.engine.get("worker_extension_cls")

    @property
    def supposes(self) -> dict[str, Any] | None:
        """How good and how dear the draft of a what-if is; None where the draft is a real one."""
        if self.speculation is None or self.speculation.method != WHAT_IF:
            return None
        return dict(self.speculation.model_extra or {})

    def speculative_config(self) -> dict[str, Any] | None:
        """vLLM's `speculative_config`; `model` is still the draft's name, not yet its path."""
        if self.speculation is None:
            return None
        if self.supposes is not None:
            return {
                "method": "custom_class",
                "model": PROPOSER,
                "num_speculative_tokens": self.speculation.speculation_length,
            }
        config: dict[str, Any] = dict(self.speculation.model_extra or {})
        config["method"] = self.speculation.method
        config["num_speculative_tokens"] = self.speculation.speculation_length
        if self.speculation.draft is not None:
            config["model"] = self.speculation.draft
        return config


def short_name(target: str) -> str:
    """Last part of an id or a path.

    >>> short_name("meta-llama/Llama-3.1-8B-Instruct"), short_name("/models/smol/")
    ('Llama-3.1-8B-Instruct', 'smol')
    """
    return target.rstrip("/").rsplit("/", 1)[-1]


def read_served_engine(args: Mapping[str, Any]) -> ServedEngine:
    """Checks the arguments of `build`.

    Raises: ValueError naming every fault, with the nearest valid name for an unknown key.
    """
    try:
        return ServedEngine.model_validate(dict(args))
    except ValidationError as error:
        raise ValueError("\n".join(_faults(error))) from None


def _faults(error: ValidationError) -> list[str]:
    lines = []
    for fault in error.errors():
        key = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            hint = nearest(str(fault["loc"][-1]), ServedEngine.model_fields)
            advice = f"did you mean {hint!r}?" if hint else "remove it"
            lines.append(f"args.{key}: unknown key; {advice}")
        else:
            lines.append(f"args.{key}: {fault['msg']}, got {fault['input']!r}")
    return lines


def from_deployment(
    deployment: Deployment, *, target_path: str, draft_path: str | None, model_name: str
) -> ServedEngine:
    """The arguments for one arm.

    `model_name` is the same in both arms, so that a client sends the same request to both.
    Raises: ValueError if a draft is named but has no path.
    """
    speculation = deployment.speculation
    return ServedEngine(
        target=target_path,
        served_model_name=model_name,
        engine=dict(deployment.engine),
        speculation=None if speculation is None else _served(speculation, draft_path),
    )


def _served(speculation: Speculation, draft_path: str | None) -> ServedSpeculation:
    if speculation.draft_model is not None and draft_path is None:
        raise ValueError(f"draft {speculation.draft!r} was not resolved to a path")
    reserved = sorted(set(speculation.options) & set(SPECULATION_KEYS))
    if reserved:
        raise ValueError(
            f"speculation options must not repeat {', '.join(SPECULATION_KEYS)}, got {reserved}"
        )
    return ServedSpeculation(
        method=speculation.method,
        speculation_length=speculation.speculation_length,
        draft=draft_path,
        **dict(speculation.options),
    )
