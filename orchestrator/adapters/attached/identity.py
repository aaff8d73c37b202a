"""Which engine a server is, from what it shows. What it does not show is not guessed.

| engine | page | its mark | source |
|---|---|---|---|
| SGLang | `/server_info`, before 0.5 `/get_server_info` | `version` and `max_total_num_tokens` or `served_model_name` | `sglang/srt/entrypoints/http_server.py` |
| TGI | `/info` | `version` and `router` or `docker_label` | its OpenAPI schema, `Info` |
| llama.cpp | `/props` | `build_info` | `tools/server/README.md` |
| vLLM | `/version` | `version`, and `owned_by: vllm` among its models | `vllm/entrypoints/openai` |
"""  # noqa: E501 -- a table

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

NOT_AVAILABLE = "not available"

ReadJson = Callable[[str], Any]
"""Path -> what it shows as JSON; None when there is no such page."""

_SGLANG_SPECULATION = (
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
)


@dataclass(frozen=True)
class Identity:
    """`engine` is "not available" when no mark is found."""

    engine: str = NOT_AVAILABLE
    version: str | None = None
    kv_capacity_tokens: int | None = None
    speculation: Mapping[str, Any] = field(default_factory=dict)
    """How the server says it speculates, in its own words; empty when it says nothing."""


def identify(read: ReadJson, *, owned_by: str | None, simulated: bool) -> Identity:
    """Single fields are taken, never a whole page: SGLang's holds its API key."""
    if simulated:
        return Identity("simulated", _text(_mapping(read("/version")).get("version")))
    for path in ("/server_info", "/get_server_info"):
        info = _mapping(read(path))
        if "version" in info and ("max_total_num_tokens" in info or "served_model_name" in info):
            return _sglang(info)
    info = _mapping(read("/info"))
    if "version" in info and ("router" in info or "docker_label" in info):
        return Identity("tgi", _text(info["version"]))
    props = _mapping(read("/props"))
    if "build_info" in props:
        return Identity("llama.cpp", _text(props["build_info"]))
    if owned_by == "vllm":
        return Identity("vllm", _text(_mapping(read("/version")).get("version")))
    return Identity()


def _sglang(info: Mapping[str, Any]) -> Identity:
    capacity = info.get("max_total_num_tokens")
    return Identity(
        "sglang",
        _text(info["version"]),
        capacity if isinstance(capacity, int) else None,
        {name: info[name] for name in _SGLANG_SPECULATION if info.get(name) is not None},
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
