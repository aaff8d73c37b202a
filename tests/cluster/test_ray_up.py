"""The cluster launcher's files: Ray's own schema, and what a sweep asks of a cluster."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests.cluster.files import CLUSTER, document, platform_ray_settings

FILES = sorted((CLUSTER / "ray").glob("*.yaml"))


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def config(request: pytest.FixtureRequest) -> Any:
    return document(request.param)


def test_there_is_a_cloud_and_there_are_machines_of_ones_own() -> None:
    assert [file.name for file in FILES] == ["aws-gpu.yaml", "on-premise.yaml"]
    assert [document(file)["provider"]["type"] for file in FILES] == ["aws", "local"]


def test_it_fits_rays_own_schema(config: Any) -> None:
    ray = importlib.util.find_spec("ray")
    assert ray is not None and ray.origin is not None
    schema = json.loads(
        (Path(ray.origin).parent / "autoscaler/ray-schema.json").read_text(encoding="utf-8")
    )
    faults = jsonschema.Draft7Validator(schema).iter_errors(config)
    assert [f"{fault.json_path}: {fault.message}" for fault in faults] == []


def test_the_token_reaches_every_node(config: Any) -> None:
    (target,) = config["file_mounts"]
    assert target.endswith("/.ray/auth_token")
    assert config["file_mounts"][target] == "~/.ray/auth_token"


def test_dashboard_and_jobs_api_are_on_loopback(config: Any) -> None:
    start = config["head_start_ray_commands"][-1]
    assert "--dashboard-host=127.0.0.1" in start
    assert "--autoscaling-config=~/ray_bootstrap_config.yaml" in start
    assert "$RAY_HEAD_IP:6379" in config["worker_start_ray_commands"][-1]


def test_aws_has_a_head_without_gpu_and_workers_of_one_kind() -> None:
    config = document(CLUSTER / "ray/aws-gpu.yaml")
    types = config["available_node_types"]
    assert "GPU" not in types[config["head_node_type"]]["resources"]
    workers = [t for name, t in types.items() if name != config["head_node_type"]]
    assert [worker["resources"]["GPU"] for worker in workers] == [1]
    assert workers[0]["max_workers"] % 2 == 0
    assert "InstanceMarketOptions" not in workers[0]["node_config"]  # spot spoils blocks
    assert workers[0]["node_config"]["ImageId"] == types["head"]["node_config"]["ImageId"]
    assert config["provider"]["cache_stopped_nodes"] is False
    assert "--env=RAY_AUTH_MODE=token" in config["docker"]["run_options"]


def test_on_premise_starts_all_workers_at_once() -> None:
    config = document(CLUSTER / "ray/on-premise.yaml")
    assert config["max_workers"] == len(config["provider"]["worker_ips"])


def test_what_has_to_be_replaced_is_marked() -> None:
    for file in FILES:
        for line in file.read_text(encoding="utf-8").splitlines():
            is_item = line.lstrip().startswith("- gpu-")  # its list is marked as a whole
            if re.search(r"\bami-|\bfs-|example\.internal", line) and not is_item:
                assert "CHANGE" in line, f"{file.name}: {line}"


def test_nodes_without_an_image_get_the_platforms_ray_settings() -> None:
    script = CLUSTER / "ray/environment.sh"
    shown = subprocess.run(
        ["bash", "-c", f". {script} && env"],
        env={"PATH": "/usr/bin:/bin", "ORCHESTRATOR_HOME": "/srv/orchestrator"},
        capture_output=True,
        text=True,
        check=True,
    )
    values = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    expected = platform_ray_settings()
    assert {name: values.get(name) for name in expected} == expected
    assert values["RAY_AUTH_MODE"] == "token"
    assert values["PATH"].startswith("/srv/orchestrator/.venv/bin:")
