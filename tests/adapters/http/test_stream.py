"""Load that goes on, over real connections to a simulated server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from orchestrator.adapters.http.stream import HttpStream
from orchestrator.plan.block import Timeouts
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import NO_LOAD, Endpoint, OfferedLoad
from orchestrator.records import RequestError
from tests.adapters.served import served
from tests.run.soak.world import requests

pytestmark = pytest.mark.slow


@pytest.fixture
def servers() -> Iterator[dict[str, Endpoint]]:
    deployment = Deployment("tiny", {"simulated": {"target_fixed_s": 0.01}})
    with (
        served(deployment, time_scale=1.0) as baseline,
        served(deployment, time_scale=1.0) as speculative,
    ):
        yield {"baseline": baseline, "speculative": speculative}


def until(stream: HttpStream, enough: Callable[[dict[str, list]], bool]) -> dict[str, list]:  # type: ignore[type-arg]
    """What has ended until it is enough."""
    seen: dict[str, list] = {"baseline": [], "speculative": []}  # type: ignore[type-arg]
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        for arm, records in stream.run_until(stream.now_s() + 0.2).items():
            seen[arm] += records
        if enough(seen):
            return seen
    raise AssertionError(f"it never was enough: {seen}")


def drained(stream: HttpStream) -> dict[str, list]:  # type: ignore[type-arg]
    """What has ended until nothing is in flight."""
    stream.offer(NO_LOAD)
    return until(stream, lambda seen: not stream.in_flight())


def test_both_arms_get_the_same_requests_until_told_otherwise(
    servers: dict[str, Endpoint],
) -> None:
    stream = HttpStream(servers, requests(), first_index=7, timeouts=Timeouts())  # type: ignore[arg-type]
    try:
        stream.offer(OfferedLoad(concurrency=2))
        seen = until(stream, lambda seen: all(len(records) > 4 for records in seen.values()))
        for arm, records in drained(stream).items():
            seen[arm] += records
        assert stream.run_until(stream.now_s() + 0.3) == {"baseline": [], "speculative": []}
    finally:
        stream.close()
    for records in seen.values():
        assert all(record.completed for record in records)
        numbers = sorted(int(record.request_id.removeprefix("soak-")) for record in records)
        assert numbers == list(range(7, 7 + len(numbers))), "each once, none left out"
        assert all(0 <= record.sent_s < record.end_s for record in records)
    assert stream.next_index() >= 7 + max(map(len, seen.values()))


def test_a_rate_sends_one_by_one(servers: dict[str, Endpoint]) -> None:
    stream = HttpStream(servers, requests(), first_index=0, timeouts=Timeouts())  # type: ignore[arg-type]
    try:
        stream.offer(OfferedLoad(rate_rps=40.0))
        seen = until(stream, lambda seen: len(seen["baseline"]) >= 20)
        drained(stream)
    finally:
        stream.close()
    sent = [record.sent_s for record in seen["baseline"]]
    assert all(record.completed for record in seen["baseline"])
    assert len(set(sent)) == len(sent)


def test_a_dead_server_fails_every_request_but_is_not_stormed(
    servers: dict[str, Endpoint],
) -> None:
    dead = Endpoint("dead", "http://127.0.0.1:9", "tiny")
    stream = HttpStream(servers, requests(), first_index=0, timeouts=Timeouts())  # type: ignore[arg-type]
    try:
        stream.redirect("speculative", dead)
        stream.offer(OfferedLoad(concurrency=3))
        seen = until(stream, lambda seen: len(seen["speculative"]) >= 6)
        assert {record.error for record in seen["speculative"]} == {RequestError.CONNECT}
        took_s = max(record.end_s for record in seen["speculative"])
        assert len(seen["speculative"]) <= 3 * (took_s + 1), "each of three slots waits a second"
        stream.redirect("speculative", servers["speculative"])
        until(stream, lambda seen: any(one.completed for one in seen["speculative"]))
    finally:
        stream.close()
