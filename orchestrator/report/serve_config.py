"""A chosen deployment as a Ray Serve config file, and as plain `vllm serve` flags."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from orchestrator.decide.recommendation import Recommendation
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.models.cache import model_folder
from orchestrator.models.catalogue import CATALOGUE
from orchestrator.plan.deployment import Deployment

IMPORT_PATH = "orchestrator.serving.app:build"
DECISION_FILE = "decision.json"
DEPLOY_FILE = "deploy.yaml"


def attached(deployment: Deployment) -> bool:
    """Whether it ran already and was only asked: then there is nothing to write down."""
    return "attached" in deployment.engine


def models_of(
    result: SweepResult, advice: Recommendation
) -> Mapping[str, Mapping[str, Any] | None]:
    """By role, with the name by which `check` looks them up again."""
    known = result.manifest.get("models") or {}
    target = result.manifest["experiment"].get("target")
    speculation = None if advice.deployment is None else advice.deployment.speculation
    draft = None if speculation is None else speculation.draft
    return {
        role: None if name is None else {"name": name, **known.get(name, {})}
        for role, name in (("target", target), ("draft", draft))
    }


def serve_config(
    deployment: Deployment, *, name: str, notes: tuple[str, ...] = (), fallback: Deployment | None
) -> str:
    """A `serve_configs/` file with the deployment at /speculative and the baseline it was measured
    against, to fall back to, at /baseline."""
    arms = [("speculative", deployment)]
    if fallback is not None:
        arms.append(("baseline", fallback))
    config = {
        "proxy_location": "HeadOnly",
        "http_options": {"host": "127.0.0.1", "port": 8000},
        "applications": [_application(arm, each) for arm, each in arms],
    }
    head = [
        *notes,
        "Run it with either of:",
        f"  python -m orchestrator serve {name}",
        f"  serve deploy {name}",
    ]
    comment = "".join(f"# {line}\n" for line in head)
    return comment + yaml.safe_dump(
        config, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )


def _application(name: str, deployment: Deployment) -> dict[str, Any]:
    return {
        "name": name,
        "route_prefix": f"/{name}",
        "import_path": IMPORT_PATH,
        "args": {
            "target": deployment.target,
            "engine": dict(deployment.engine),
            "speculation": None
            if deployment.speculation is None
            else {
                "method": deployment.speculation.method,
                "speculation_length": deployment.speculation.speculation_length,
                **(
                    {}
                    if deployment.speculation.draft is None
                    else {"draft": deployment.speculation.draft}
                ),
                **dict(deployment.speculation.options),
            },
        },
    }


def speculative_config(deployment: Deployment) -> dict[str, Any] | None:
    """vLLM's `speculative_config` under its own names; `model` is the draft as it was named."""
    speculation = deployment.speculation
    if speculation is None:
        return None
    config: dict[str, Any] = {
        "method": speculation.method,
        "num_speculative_tokens": speculation.speculation_length,
    }
    if speculation.draft is not None:
        config["model"] = speculation.draft
    return config | dict(speculation.options)


def vllm_serve(deployment: Deployment) -> str:
    """`vllm serve TARGET --flag value ...`, quoted for a shell; models by names that vLLM knows."""
    words = ["vllm", "serve", _known_to_vllm(deployment.target)]
    for name, value in deployment.engine.items():
        words += _flag(name, value)
    config = speculative_config(deployment)
    if config is not None:
        if "model" in config:
            config["model"] = _known_to_vllm(config["model"])
        words += ["--speculative-config", json.dumps(config, ensure_ascii=False)]
    return shlex.join(words)


def _known_to_vllm(name: str) -> str:
    """A catalogue name means nothing to vLLM: the hub's id, or the folder that `models prepare`
    fills."""
    entry = CATALOGUE.get(name)
    return name if entry is None else entry.hub_id or str(model_folder(name))


def _flag(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if value is True:
        return [flag]
    if value is False:
        return ["--no-" + flag[2:]]
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [flag, text]
