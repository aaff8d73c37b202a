"""The whole on a real Ray Serve: two engines, two replicas of the switch, a keeper, accidents."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest

from orchestrator.adapters.switch_client import SwitchClient, token_of
from orchestrator.errors import SwitchUnreachable
from tests.serving.switch.room import ENGINES, HEALTH, Got, ask, question, wait_for

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PERIOD_S = 4.0


class Site:
    """Where things are, and what operates them."""

    def __init__(self, state: Path, port: int, admin_port: int) -> None:
        self.state, self.port = state, port
        self.client = SwitchClient(f"http://127.0.0.1:{admin_port}", token_of(None, state))

    def ask(self, **more: Any) -> Got:
        return ask(self.port, question(**more))

    def state_now(self) -> dict[str, Any]:
        said: dict[str, Any] = self.client.get("/admin/state")
        return said

    def set(self, **policy: Any) -> None:
        version = self.client.post("/admin/policy", {"policy": policy, "why": "a test"})["version"]
        wait_for(
            lambda: {r["settings"] for r in self.state_now()["replicas"].values()} == {version}
        )

    def arms(self, asks: int = 30) -> set[str | None]:
        return {self.ask().arm for _ in range(asks)}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    from ray import cloudpickle, serve

    from orchestrator.adapters.ray_local import ensure_ray, ensure_serve, free_port
    from orchestrator.adapters.serve_application import order_application
    from orchestrator.serving.switch.app import build
    from tests.serving.switch import simulated_arm

    cloudpickle.register_pickle_by_value(simulated_arm)
    ray = ensure_ray()
    address = ensure_serve()
    admin_port = free_port()
    with TemporaryDirectory(prefix="switch-") as name:
        state = Path(name)
        args = {
            "state": name,
            "replicas": 2,
            "health": {**HEALTH, "period_s": PERIOD_S},
            "arm_header": "x-arm",
            "policy": {"mode": "fixed", "share": 1.0},
            "admin": {"port": admin_port},
        }
        try:
            for arm, deployment in ENGINES.items():
                path = f"{name}/{arm}.sock"
                order_application(
                    lambda d=deployment, p=path: simulated_arm.arm(d, p),  # type: ignore[misc]
                    arm,
                    None,
                )
            order_application(lambda: build(args), "switch", "/")
            wait_for(lambda: (state / "admin.token").exists(), 60)
            one = Site(state, address.port, admin_port)
            wait_for(lambda: answered(one) == "speculative", 60)
            wait_for(lambda: len(one.state_now()["replicas"]) == 2, 30)
            yield one
        finally:
            serve.shutdown()
            ray.close()


def answered(site: Site) -> str | None:
    try:
        return site.ask().arm
    except OSError:
        return None


def test_both_replicas_answer_and_agree(site: Site) -> None:
    for policy, arms in [
        ({"mode": "off"}, {"baseline"}),
        ({"mode": "fixed", "share": 1.0}, {"speculative"}),
    ]:
        site.set(**policy)
        wait_for(lambda arms=arms: site.arms() == arms)  # type: ignore[misc]
    counts = [r["counts"] for r in site.state_now()["replicas"].values()]
    assert all(one.get("speculative_requests", 0) > 0 for one in counts)


def test_a_stream_comes_as_the_engine_sent_it(site: Site) -> None:
    site.set(mode="off")
    wait_for(lambda: site.arms(5) == {"baseline"})
    got = site.ask(stream=True, seed=5)
    bare = ask(site.state / "baseline.sock", question(stream=True, seed=5))

    def named(body: bytes) -> bytes:
        return b"".join(
            b"data: " + json.dumps({**json.loads(e[6:]), "id": ""}).encode()
            if e.startswith(b"data: {")
            else e
            for e in body.split(b"\n\n")
        )

    assert got.headers["content-type"] == bare.headers["content-type"]
    assert named(got.body) == named(bare.body)
    assert got.body.endswith(b"data: [DONE]\n\n")


def test_nothing_of_an_engine_or_of_the_admin_api_is_on_the_public_port(site: Site) -> None:
    for path in ("/metrics", "/admin/state", "/baseline/v1/models", "/speculative/metrics"):
        assert ask(site.port, method="GET", path=path).status == 404


def test_a_caller_that_leaves_frees_the_engine(site: Site) -> None:
    site.set(mode="fixed", share=1.0)
    wait_for(lambda: site.arms(5) == {"speculative"})
    said = json.dumps(question(max_tokens=4000, stream=True, ignore_eos=True)).encode()
    with socket.create_connection(("127.0.0.1", site.port)) as caller:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(said)}\r\n"
        caller.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + said)
        assert caller.recv(1000).startswith(b"HTTP/1.1 200")
        wait_for(lambda: site.state_now()["arms"]["speculative"]["in_flight"] == 1)
    wait_for(lambda: site.state_now()["arms"]["speculative"]["in_flight"] == 0)


def test_a_killed_arm_and_a_killed_keeper_and_a_killed_replica(site: Site) -> None:
    """No caller fails but the one inside what is killed; settings and log are as they were."""
    site.set(mode="fixed", share=1.0)
    wait_for(lambda: site.arms(5) == {"speculative"})
    events = site.client.get("/admin/events?most=1000")

    pid = _pid_of("speculative:SimulatedArm")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    with ThreadPoolExecutor(4) as threads:
        caught = [threads.submit(site.ask) for _ in range(4)]
        answers = [each.result() for each in caught]
    took_s = time.monotonic() - begun
    assert [(got.status, got.arm) for got in answers] == [(200, "baseline")] * 4
    assert took_s < 2 * PERIOD_S, "one health period, and what a busy machine adds"

    os.kill(pid, signal.SIGKILL)
    assert {site.ask().status for _ in range(20)} == {200}
    wait_for(lambda: site.arms(3) == {"speculative"}, 60)

    keeper = _pid_of("switch:keeper")
    os.kill(keeper, signal.SIGKILL)
    assert {site.ask().status for _ in range(20)} == {200}
    wait_for(lambda: _pid_of("switch:keeper") not in (None, keeper), 60)
    wait_for(lambda: _reachable(site), 30)

    replica = _pid_of("switch:switch")
    assert replica is not None
    os.kill(replica, signal.SIGKILL)
    wait_for(lambda: _pid_of("switch:switch") not in (None, replica), 60)
    wait_for(lambda: answered(site) is not None, 30)
    assert {site.ask().status for _ in range(20)} == {200}

    after = site.client.get("/admin/events?most=1000")
    assert after[: len(events)] == events
    whats = [event["what"] for event in after[len(events) :]]
    assert whats[:2] == ["speculative_down", "fallback"]
    assert "return" in whats
    assert site.state_now()["settings"]["policy"] == {"mode": "fixed", "share": 1.0}


def _pid_of(deployment: str) -> int | None:
    """Of the first replica of `application:deployment` that runs."""
    for process in psutil.process_iter(["cmdline"]):
        if f"ServeReplica:{deployment}" in " ".join(process.info["cmdline"] or ()):
            return int(process.pid)
    return None


def _reachable(site: Site) -> bool:
    try:
        site.state_now()
    except SwitchUnreachable:
        return False
    return True
