"""Attached servers behind the ports: nothing is started, nothing is stopped, nothing leaks."""

from __future__ import annotations

import os
import pickle
import socket
from dataclasses import asdict, replace

import psutil
import pytest

from orchestrator.adapters.attached import placement
from orchestrator.adapters.attached.access import Access
from orchestrator.adapters.attached.deployer import AttachedDeployer
from orchestrator.adapters.attached.redacted import RedactedClient
from orchestrator.adapters.attached.telemetry import AttachedTelemetry
from orchestrator.adapters.http.prometheus import PrometheusProbe
from orchestrator.errors import DeploymentError
from orchestrator.measure.validity import invalid_reasons
from orchestrator.plan.arms import relaunched
from orchestrator.plan.block import BlockPlan
from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.ports import BlockObservation, Endpoint
from orchestrator.records import RequestError
from tests.adapters.attached.fake_server import SGLANG, VLLM, FakeServer, serving
from tests.measure.records_by_hand import HEALTHY, block, request
from tests.run.fakes import FakeBlocks, FakeTelemetry

KEY = "sk-planted-0123456789"


def attached(url: str, speculation: Speculation | None = None) -> Deployment:
    return Deployment("attached", {"attached": url}, speculation)


def access() -> Access:
    return Access({"Authorization": f"Bearer {KEY}"}, secret=KEY, key_variable="SERVER_KEY")


def test_an_endpoint_carries_the_key_and_nothing_else_shows_it() -> None:
    with serving(FakeServer(key=KEY, pages=VLLM)) as server:
        deployer = AttachedDeployer(access())
        endpoint = deployer.start(attached(server.url), name="b", timeout_s=5)
        facts = deployer.facts("b")
    assert endpoint.headers == {"Authorization": f"Bearer {KEY}"}
    assert KEY not in repr(endpoint) + repr(facts) + str(asdict(facts)) + repr(deployer)
    assert endpoint.model == "m"
    assert facts.start_s is None  # we did not start it
    assert facts.extra["attached"] == server.url


def test_the_same_server_twice_is_two_arms_and_says_so() -> None:
    with serving(FakeServer()) as server:
        deployer, once = AttachedDeployer(Access()), attached(server.url)
        again = relaunched(once)
        for name, deployment in (("one", once), ("two", again)):
            deployer.start(deployment, name=name, timeout_s=5)
        assert deployer.facts("two").extra["same_server_as"] == once.key
        assert again.label() == "baseline (again)"
        deployer.stop("one")
        assert not deployer.healthy("one")
        assert deployer.healthy("two")
    assert not deployer.healthy("two")


def test_stopping_leaves_the_server_alone() -> None:
    with serving(FakeServer()) as server:
        deployer = AttachedDeployer(Access())
        deployer.start(attached(server.url), name="one", timeout_s=5)
        deployer.stop("one")
        deployer.stop("never heard of")
        deployer.close()
        assert deployer.start(attached(server.url), name="one", timeout_s=5).model == "m"


def test_a_deployment_without_an_address_is_refused() -> None:
    with pytest.raises(DeploymentError, match="no address"):
        AttachedDeployer(Access()).start(Deployment("tiny", {}), name="x", timeout_s=1)


def test_a_server_of_this_host_is_found_with_its_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://localhost:{listener.getsockname()[1]}"
        assert placement.on_this_host(url)
        assert placement.server_pids(url) == (os.getpid(),)
        # What a forwarder listens for runs elsewhere: its figures are not the server's.
        monkeypatch.setattr(placement, "FORWARDERS", {psutil.Process().name()})
        assert not placement.on_this_host(url)
        assert placement.server_pids(url) == ()


def test_other_hosts_are_others() -> None:
    assert not placement.on_this_host("http://192.0.2.1:8000")  # TEST-NET-1: nobody's address
    assert not placement.on_this_host("http://no-such-host.invalid:8000")
    assert placement.server_pids("http://192.0.2.1:8000") == ()


def test_host_figures_only_for_the_arm_that_is_here() -> None:
    class Told(FakeTelemetry):
        def start(self, endpoint: Endpoint) -> FakeTelemetry:
            asked.append(endpoint.base_url)
            return self

    asked: list[str] = []
    telemetry = AttachedTelemetry(Told(), here=lambda url: url == "http://here:1")
    for url in ("http://here:1", "http://there:1", "http://here:1"):
        assert telemetry.start(Endpoint("x", url, "m")).stop() == ()
    assert asked == ["http://here:1", "http://here:1"]


def test_a_key_that_the_server_quotes_is_masked_in_the_records() -> None:
    class Quoting:
        def run_block(self, endpoint: Endpoint, plan: BlockPlan) -> BlockObservation:
            failed = replace(
                request(error=RequestError.HTTP_STATUS), error_text=f"HTTP 401: bad key {KEY}!"
            )
            said = replace(request(), text=f"your key is {KEY}")
            return BlockObservation(0.0, 1.0, (failed, said, request()), HEALTHY)

        def close(self) -> None: ...

    seen = RedactedClient(Quoting(), access()).run_block(
        Endpoint("x", "http://a", "m"), FakeBlocks().pair(0)
    )
    assert KEY.encode() not in pickle.dumps(seen)
    assert seen.requests[0].error_text == "HTTP 401: bad key ***masked***!"
    assert seen.requests[1].text == "your key is ***masked***"


def test_counters_are_read_with_the_key_and_missing_ones_are_none() -> None:
    with serving(FakeServer(key=KEY, pages=SGLANG)) as server:
        keyed = Endpoint("x", server.url, "m", {"Authorization": f"Bearer {KEY}"})
        seen = PrometheusProbe().read(keyed)
        assert PrometheusProbe().read(Endpoint("x", server.url, "m")) is None
    assert seen is not None
    assert (seen.drafts, seen.acceptance_length_gauge) == (7, 2.4)
    assert (seen.accepted_tokens, seen.draft_tokens, seen.kv_cache_usage) == (None, None, None)


def test_a_gauge_of_acceptance_that_falls_is_no_restart() -> None:
    """SGLang's `spec_accept_length` is that of its last interval: it goes up and down."""
    with serving(FakeServer(pages=SGLANG)) as server:
        before = PrometheusProbe().read(Endpoint("x", server.url, "m"))
    assert before is not None
    after = replace(before, acceptance_length_gauge=1.1, generation_tokens=102.0)
    assert invalid_reasons(block(request(), before=before, after=after)) == ()
