"""Devices of a real Ray cluster with pretended GPUs: found, reserved, given back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.cluster_run.nodes import cluster_of

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def told() -> Any:
    h100 = {"ray.io/accelerator-type": "H100"}
    nodes = [{"num_gpus": 2, "num_cpus": 4, "labels": h100} for _ in "ab"]
    with cluster_of(*nodes, {"num_gpus": 8, "labels": {"ray.io/accelerator-type": "L4"}}) as one:
        asked = [sys.executable, "-m", "tests.cluster_run.reservations", one.address]
        run = subprocess.run(asked, capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def test_nodes_tell_their_model_their_devices_and_their_machine(told: Any) -> None:
    by_model = sorted((node["model"], node["gpus"]) for node in told["nodes"] if node["gpus"])
    assert by_model == [("H100", 2.0), ("H100", 2.0), ("L4", 8.0)]
    assert len({node["host"] for node in told["nodes"]}) == 1
    assert [node["id"] for node in told["nodes"] if node["is_head"]] == [told["head"]]


def test_separate_arms_get_different_devices_of_one_node(told: Any) -> None:
    one, other = told["separate"]
    assert one["node"] == other["node"]
    assert {one["devices"], other["devices"]} == {"0", "1"}
    assert one["group"] is None


def test_what_another_sweep_holds_is_not_given_again(told: Any) -> None:
    assert "another job or sweep on this cluster holds them" in told["taken"]


def test_arms_that_share_get_the_same_devices(told: Any) -> None:
    assert told["shared"]["devices"] == "0,1"


def test_an_engine_over_two_nodes_gets_a_group_with_one_device_a_bundle(told: Any) -> None:
    spread = told["spread"]
    assert [bundle["GPU"] for bundle in spread["bundles"]] == [1.0] * 4
    assert len(spread["nodes"]) == 4
    assert len(set(spread["nodes"])) == 2
    assert spread["place"]["devices"] is None
