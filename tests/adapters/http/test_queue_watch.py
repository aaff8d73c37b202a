"""An open block over a server that cannot keep up, on real sockets and in real time."""

from __future__ import annotations

import pytest

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.http.exchange import NOT_SENT
from orchestrator.measure.validity import invalid_reasons
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt
from orchestrator.plan.trial import LoadPoint, Sampling
from orchestrator.ports import Endpoint
from orchestrator.records import BlockRecord, InvalidReason, RequestError
from tests.e2e.test_attach import simulated

pytestmark = pytest.mark.slow
PROMPT = Prompt("p", "p", ("Tell me something.",))


def block(rate_rps: float, count: int) -> BlockPlan:
    return BlockPlan(
        requests=tuple(
            PlannedRequest(f"r{n}", PROMPT, n / rate_rps, 16, None) for n in range(count)
        ),
        load=LoadPoint("open", rate_rps=rate_rps, arrivals="constant"),
        sampling=Sampling(),
        endpoint="chat",
        fixed_length=True,
        history="first_turn",
    )


def test_a_block_whose_queue_grows_without_bound_is_given_up() -> None:
    with simulated(engine={"max_num_seqs": 1}) as (url, _), HttpLoadClient(1) as client:
        endpoint = Endpoint("slow", url, "tiny")
        # The fastest of a few, one after another: never less than the server can do.
        alone = [client.run_block(endpoint, block(1.0, 1)).requests[0].end_s for _ in range(5)]
        capacity_rps = 1 / min(end_s for end_s in alone if end_s is not None)
        seen = client.run_block(endpoint, block(4 * capacity_rps, 400))
        again = client.run_block(endpoint, block(0.3 * capacity_rps, 3))
    assert seen.ended_early is not None
    assert "stay" in seen.ended_early
    assert [request.request_id for request in seen.requests] == [f"r{n}" for n in range(400)]
    errors = [request.error for request in seen.requests]
    assert set(errors) == {None, RequestError.CANCELLED}
    unsent = [request for request in seen.requests if request.error_text == NOT_SENT]
    assert len(unsent) > 200, "half of the block was spared"
    assert all(request.sent_s is None and request.end_s is None for request in unsent)
    assert again.ended_early is None
    assert all(request.completed for request in again.requests)
    record = BlockRecord(
        "t", 0, "baseline", 0, "measured", 0.0, seen.duration_s, seen.requests, seen.client,
        None, None, ended_early=seen.ended_early,
    )  # fmt: skip
    reasons = {finding.reason for finding in invalid_reasons(record)}
    assert InvalidReason.SATURATED in reasons
