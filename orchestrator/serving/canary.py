"""The pair that a decision recommends, behind a switch with the decision's limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.decide.decision_document import read_decision
from orchestrator.errors import Fault, SpecError
from orchestrator.serving.serve_file import (
    ServedApplication,
    ServedSwitch,
    ServeFile,
    read_serve_file,
)
from orchestrator.switch.config import SwitchConfig, switch_config
from orchestrator.switch.guard import settings_from

ON_BELOW = 0.75
"""Of the load above which speculation is off: where it comes back."""
TELLS_DRAFTS = "per_request_spec_decode_metrics"
"""vLLM's engine argument: with it the guard knows acceptance by category."""


def canary_from(
    decision_path: Path, *, state: str | None = None
) -> tuple[ServeFile, tuple[str, ...]]:
    """What to serve, and what a person should know of it.

    `state` None: a folder of the sweep's name under the user's home.
    The arms are those of the `deploy.yaml` beside the decision, each behind a socket of its own.
    Raises: SpecError when nothing is to be deployed, or it is not there any more.
    """
    document = read_decision(decision_path)
    plain: Mapping[str, Any] = json.loads(decision_path.read_text(encoding="utf-8"))
    configuration, guard = plain["configuration"], plain["guard"]
    if configuration is None or guard is None:
        raise _nothing(decision_path, "must recommend a deployment", document.advice)
    if configuration.get("serve_config") is None:
        raise _nothing(
            decision_path,
            "must be of engines that the sweep started itself",
            "servers that were attached",
            "name them as `arms` in a file like serve_configs/canary.yaml",
        )
    file = read_serve_file(decision_path.parent / configuration["serve_config"])
    arms = {one.name: one for one in file.applications}
    if set(arms) != {"baseline", "speculative"}:
        where = str(decision_path.parent / configuration["serve_config"])
        raise SpecError(
            [Fault(where, None, "applications", "must be baseline and speculative", f"{set(arms)}")]
        )
    # A socket's path may have about 100 bytes: not beside the decision, wherever that is.
    state = str(Path(state or f"~/.local/state/orchestrator/{document.sweep}").expanduser())
    config = config_from(guard, state=state)
    private = tuple(_private(arms[name], state) for name in ("baseline", "speculative"))
    switch = ServedSwitch("switch", "/", config)
    notes = [
        f"decision of sweep {document.sweep}: {document.advice}",
        *(
            f"{name} is no bound that single requests can be held to: not watched live"
            for name in settings_from(guard).left_out
        ),
        *(["SIMULATED: nothing was measured on a device"] if document.simulated else []),
        f"python -m orchestrator check {decision_path} tells whether it still holds here",
        f"policy: {json.dumps(config.policy.model_dump(mode='json', exclude_none=True))}",
    ]
    return ServeFile(file.host, file.port, private, switch), tuple(notes)


def config_from(guard: Mapping[str, Any], *, state: str) -> SwitchConfig:
    """A ramp within the decision's limits: `guard` of decision.json.

    Speculation is off above `load_max`, the highest load at which it was found to pay.
    """
    policy: dict[str, Any] = {"mode": "ramp"}
    if guard["load_max"]:
        most = float(guard["load_max"])
        policy["load"] = {
            "off_above": most,
            "on_below": ON_BELOW * most,
            "unit": guard["load_unit"],
        }
    return switch_config(
        {
            "state": state,
            "policy": policy,
            "guard": settings_from(guard).settings.model_dump(mode="json"),
        }
    )


def _private(one: ServedApplication, state: str) -> ServedApplication:
    """Reached by its own socket alone; the speculative arm tells its drafts request by request."""
    engine = dict(one.engine.engine)
    if one.engine.speculation is not None:
        engine.setdefault(TELLS_DRAFTS, "summary")
    update = {"direct": f"{state}/{one.name}.sock", "engine": engine}
    return replace(one, route_prefix=None, engine=one.engine.model_copy(update=update))


def _nothing(path: Path, rule: str, value: str, hint: str | None = None) -> SpecError:
    return SpecError([Fault(str(path), None, "configuration", rule, value, hint)])
