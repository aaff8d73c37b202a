"""The switch as a Serve application: order it, wait until it answers, say where it is."""

from __future__ import annotations

import time
from pathlib import Path

from ray import serve

from orchestrator.adapters.ray_local import ServeAddress
from orchestrator.adapters.serve_application import FAILED, order_application
from orchestrator.adapters.web import answers
from orchestrator.errors import DeploymentError
from orchestrator.records import FailureClass
from orchestrator.serving.serve_file import ServedSwitch
from orchestrator.serving.switch import app
from orchestrator.switch.keys import TOKEN_FILE

START_S = 120.0
POLL_S = 0.2


def start_switch(switch: ServedSwitch, address: ServeAddress, model: str) -> str:
    """Returns when it answers, with what a person needs to know. Raises: DeploymentError"""
    order_application(
        lambda: app.build(switch.config.model_dump(mode="json")), switch.name, switch.route_prefix
    )
    base_url = address.url + switch.route_prefix.rstrip("/")
    until = time.monotonic() + START_S
    while not answers(f"{base_url}/health", timeout_s=POLL_S * 5):
        cause = failed(switch.name)
        if cause or time.monotonic() > until:
            raise DeploymentError(
                (FailureClass.START_FAILED if cause else FailureClass.START_TIMEOUT).value,
                cause or f"the switch did not answer at {base_url} within {START_S:g} s",
            )
        time.sleep(POLL_S)
    return switch_lines(switch, base_url, model)


def failed(name: str) -> str | None:
    """What Serve says of an application that will not run."""
    seen = serve.status().applications.get(name)
    if seen is None or seen.status not in FAILED:
        return None
    messages = [seen.message, *(one.message for one in seen.deployments.values())]
    return " ".join(" ".join(messages).split())[-2000:]


def switch_lines(switch: ServedSwitch, base_url: str, model: str) -> str:
    config = app.placed(switch.config)
    token = (
        "an operator's"
        if config.admin.operators
        else f"the one in {Path(config.state) / TOKEN_FILE}"
    )
    return (
        f"switch: {base_url}/v1 (model {model})\n"
        f"  admin API: http://{config.admin.host}:{config.admin.port}/admin/state, token: {token}\n"
        f"  python -m orchestrator switch status --state {config.state}"
    )
