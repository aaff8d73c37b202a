"""The ports on virtual time: what comes out is what a streaming server would have shown."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from orchestrator.adapters.simulated.in_process import (
    SimulatedDeployer,
    SimulatedProbe,
    SimulatedTelemetry,
)
from orchestrator.adapters.simulated.load_client import SimulatedLoadClient
from orchestrator.adapters.simulated.truth import steady_state, true_speedup
from orchestrator.adapters.simulated.world import SimulatedWorld
from orchestrator.errors import DeploymentError
from orchestrator.plan.block import Timeouts
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import (
    BlockObservation,
    Deployer,
    Endpoint,
    LoadClient,
    ServerProbe,
    Telemetry,
)
from orchestrator.records import RequestError, RequestRecord
from tests.adapters.simulated.build import MILLISECOND_STEPS, block, configuration, deployment


class Lab:
    """A world with everything that stands in it."""

    def __init__(self, seed: int = 0) -> None:
        self.world = SimulatedWorld(seed)
        self.deployer: Deployer = SimulatedDeployer(self.world)
        self.client: LoadClient = SimulatedLoadClient(self.world)
        self.probe: ServerProbe = SimulatedProbe(self.world)
        self.telemetry: Telemetry = SimulatedTelemetry(self.world)

    def start(self, wanted: Deployment, name: str = "one", timeout_s: float = 60) -> Endpoint:
        return self.deployer.start(wanted, name=name, timeout_s=timeout_s)


def tpot_s(seen: BlockObservation) -> float:
    return float(
        np.mean(
            [(r.chunk_s[-1] - r.chunk_s[0]) / ((r.output_tokens or 0) - 1) for r in seen.requests]
        )
    )


def only(seen: BlockObservation) -> RequestRecord:
    (record,) = seen.requests
    return record


def test_one_request_as_a_streaming_server_shows_it() -> None:
    lab = Lab()
    endpoint = lab.start(deployment(3, acceptance=1.0, **MILLISECOND_STEPS))
    record = only(lab.client.run_block(endpoint, block(1, max_tokens=9)))
    assert record.chunk_s == pytest.approx((0.001, 0.002, 0.003))
    assert record.chunk_tokens == (1, 4, 4)
    assert (record.sent_s, record.end_s) == (0.0, pytest.approx(0.003))
    assert (record.input_tokens, record.output_tokens, record.max_tokens) == (10, 9, 9)
    assert (record.finish_reason, record.tokens_from) == ("length", "usage_continuous")
    assert record.token_ids is not None and len(record.token_ids) == 9
    assert len(record.text.split()) == 9


def test_everything_says_simulated() -> None:
    lab = Lab()
    endpoint = lab.start(deployment(3, kv_capacity_tokens=1000, draft_kv_fraction=0.2))
    facts = lab.deployer.facts("one")
    assert endpoint.simulated and facts.simulated and facts.engine == "simulated"
    assert endpoint.base_url == "simulated://one"
    assert facts.kv_capacity_tokens == 800
    assert lab.deployer.healthy("one")


def test_a_closed_loop_keeps_its_number_in_flight_and_queues_past_the_engines_cap() -> None:
    lab = Lab()
    endpoint = lab.start(deployment(engine={"max_num_seqs": 2}, **MILLISECOND_STEPS))
    seen = lab.client.run_block(endpoint, block(8, concurrency=4, max_tokens=5))
    first_four = [r.sent_s for r in seen.requests[:4]]
    assert first_four == [0.0] * 4
    ttft = [r.chunk_s[0] - (r.sent_s or 0.0) for r in seen.requests]
    assert ttft[:2] == pytest.approx([0.001, 0.001])
    assert ttft[2:] == pytest.approx([0.006] * 6), "each waits for the two before it: 5 steps"
    assert seen.duration_s == pytest.approx(8 / 2 * 0.005)


def test_an_open_loop_sends_on_time_whatever_the_server_does() -> None:
    lab = Lab()
    endpoint = lab.start(deployment(engine={"max_num_seqs": 1}, **MILLISECOND_STEPS))
    offsets = [0.0, 0.0105, 0.011, 0.5]
    seen = lab.client.run_block(endpoint, block(4, offsets=offsets, max_tokens=20))
    assert [r.sent_s for r in seen.requests] == pytest.approx(offsets)
    assert [r.offset_s for r in seen.requests] == offsets
    assert [r.chunk_s[0] for r in seen.requests] == pytest.approx([0.001, 0.021, 0.041, 0.501])


def test_both_arms_answer_the_same_with_noise_of_their_own() -> None:
    lab = Lab()
    plan = block(6, concurrency=2, max_tokens=32)
    arms = [
        lab.client.run_block(lab.start(deployment(k, jitter_sigma=0.1), f"arm{k}"), plan)
        for k in (0, 3)
    ]
    relaunched = lab.client.run_block(
        lab.start(deployment(0, jitter_sigma=0.1, replica_of="x"), "again"), plan
    )
    texts = [{r.request_id: r.text for r in seen.requests} for seen in (*arms, relaunched)]
    assert texts[0] == texts[1] == texts[2]
    assert arms[0].duration_s != relaunched.duration_s
    assert arms[0].duration_s == pytest.approx(relaunched.duration_s, rel=0.1)


def test_garbage_differs_from_the_answer() -> None:
    lab = Lab()
    good = only(lab.client.run_block(lab.start(deployment(), "good"), block(1)))
    bad = only(
        lab.client.run_block(
            lab.start(deployment(faults={"garbage_output": True}), "bad"), block(1)
        )
    )
    assert good.text != bad.text and set(bad.token_ids or ()) == {0}
    assert good.output_tokens == bad.output_tokens


def test_the_same_seed_gives_the_same_records_and_another_does_not() -> None:
    def observe(seed: int) -> list[BlockObservation]:
        lab = Lab(seed)
        how: dict[str, Any] = {"jitter_sigma": 0.1, "slow_jitter_sigma": 0.05}
        ends = [lab.start(deployment(k, **how), f"arm{k}") for k in (0, 2)]
        return [
            lab.client.run_block(ends[arm], block(8, concurrency=3, first=8 * i))
            for i, arm in enumerate((0, 1, 1, 0))
        ]

    assert observe(1) == observe(1)
    assert observe(1) != observe(2)


def test_state_goes_on_between_blocks_and_a_restart_begins_anew() -> None:
    lab = Lab()
    grows = deployment(drifts={"step_growth_per_hour": 36_000}, **MILLISECOND_STEPS)
    endpoint = lab.start(grows)
    first = lab.client.run_block(endpoint, block(1, max_tokens=200))
    second = lab.client.run_block(endpoint, block(1, max_tokens=200, first=1))
    assert second.started_unix_s == pytest.approx(first.started_unix_s + first.duration_s)
    assert tpot_s(second) > 2 * tpot_s(first)
    lab.deployer.stop("one")
    endpoint = lab.start(grows)
    assert tpot_s(lab.client.run_block(endpoint, block(1, max_tokens=200))) == pytest.approx(
        tpot_s(first)
    )


def test_one_arm_grows_older_while_the_other_runs() -> None:
    lab = Lab()
    a, b = lab.start(deployment(), "a"), lab.start(deployment(1), "b")
    ran = lab.client.run_block(a, block(1, max_tokens=100))
    later = lab.client.run_block(b, block(1))
    assert later.started_unix_s == pytest.approx(ran.started_unix_s + ran.duration_s)


def test_counters_agree_with_what_the_client_saw() -> None:
    lab = Lab()
    endpoint = lab.start(deployment(3, acceptance=[0.9, 0.6, 0.3]))
    before = lab.probe.read(endpoint)
    seen = lab.client.run_block(endpoint, block(20, concurrency=4, max_tokens=33))
    after = lab.probe.read(endpoint)
    assert before is not None and after is not None
    tokens = sum(r.output_tokens or 0 for r in seen.requests)
    assert (after.generation_tokens or 0) - (before.generation_tokens or 0) == tokens == 660
    assert (after.prompt_tokens, after.requests_finished) == (200.0, 20.0)
    chunks = sum(len(r.chunk_s) - 1 for r in seen.requests)
    assert after.drafts == chunks, "every chunk after the first came out of one draft"
    assert after.draft_tokens == 3 * chunks
    assert after.accepted_per_position is not None
    assert sum(after.accepted_per_position) == after.accepted_tokens
    delivered = sum(n - 1 for r in seen.requests for n in (r.chunk_tokens or ())[1:])
    assert 0 <= (after.accepted_tokens or 0) - delivered <= 3 * 20, "cut at the answers' ends"
    assert before.replica_ids == after.replica_ids
    assert (after.running_requests, after.kv_cache_usage) == (0.0, 0.0)


def test_a_baseline_has_no_speculation_counters_and_a_restart_is_noticed() -> None:
    lab = Lab()
    first = lab.probe.read(lab.start(deployment()))
    assert first is not None and first.drafts is None and first.accepted_per_position is None
    lab.deployer.stop("one")
    second = lab.probe.read(lab.start(deployment()))
    assert second is not None and second.replica_ids != first.replica_ids


@pytest.mark.parametrize(
    ("how", "timeout_s", "failure"),
    [
        ({"faults": {"start_failure": "out_of_memory"}}, 60, "out_of_memory"),
        ({"faults": {"start_failure": "start_failed"}}, 60, "start_failed"),
        ({"faults": {"slow_start_s": 100}}, 60, "start_timeout"),
        ({"acceptance": 2}, 60, "bad_configuration"),
    ],
)
def test_planted_start_failures(how: dict[str, Any], timeout_s: float, failure: str) -> None:
    lab = Lab()
    with pytest.raises(DeploymentError) as caught:
        lab.start(deployment(**how), timeout_s=timeout_s)
    assert caught.value.failure == failure
    assert caught.value.log_tail and not lab.deployer.healthy("one")


def test_a_crash_in_a_block_and_the_life_after_it() -> None:
    lab = Lab()
    dies = deployment(faults={"crash_at_s": 0.0105, "first_life_only": True}, **MILLISECOND_STEPS)
    endpoint = lab.start(dies)
    seen = lab.client.run_block(endpoint, block(4, concurrency=2, max_tokens=8))
    assert [r.error for r in seen.requests] == [None, None, RequestError.RESET, RequestError.RESET]
    assert seen.requests[2].chunk_tokens == (1, 1), "what came before the crash is kept"
    assert not lab.deployer.healthy("one") and lab.probe.read(endpoint) is None
    gone = lab.client.run_block(endpoint, block(2))
    assert {r.error for r in gone.requests} == {RequestError.CONNECT}
    lab.deployer.stop("one")
    assert {r.error for r in lab.client.run_block(lab.start(dies), block(3)).requests} == {None}


def test_a_stopped_engine_refuses_connections() -> None:
    lab = Lab()
    endpoint = dataclasses.replace(lab.start(deployment()), headers={})
    lab.deployer.close()
    seen = lab.client.run_block(endpoint, block(2))
    assert {r.error for r in seen.requests} == {RequestError.CONNECT}
    assert lab.probe.read(endpoint) is None
    with pytest.raises(DeploymentError, match="start it first"):
        lab.deployer.facts("one")


def test_a_hung_engine_is_unhealthy_and_its_requests_time_out() -> None:
    lab = Lab()
    endpoint = lab.start(deployment(faults={"hang_from_s": 0.0045}, **MILLISECOND_STEPS))
    patience = Timeouts(first_token_s=1.0, stall_s=0.5)
    seen = lab.client.run_block(endpoint, block(2, concurrency=1, timeouts=patience))
    assert [r.error for r in seen.requests] == [
        RequestError.STALL_TIMEOUT,
        RequestError.FIRST_TOKEN_TIMEOUT,
    ]
    assert seen.duration_s == pytest.approx(0.004 + 0.5 + 1.0)
    assert not lab.deployer.healthy("one")


def test_turns_of_a_conversation_follow_one_another_with_a_growing_prompt() -> None:
    lab = Lab()
    endpoint = lab.start(deployment(**MILLISECOND_STEPS))
    seen = lab.client.run_block(endpoint, block(2, concurrency=1, turns=3, history="own"))
    assert [(r.request_id, r.turn) for r in seen.requests] == [
        (name, turn) for name in ("r0", "r1") for turn in (0, 1, 2)
    ]
    inputs = [r.input_tokens or 0 for r in seen.requests[:3]]
    assert inputs[0] < inputs[1] < inputs[2]
    assert [r.sent_s for r in seen.requests[1:]] == [r.end_s for r in seen.requests[:-1]]


def test_answers_that_may_end_by_themselves_have_the_same_length_in_both_arms() -> None:
    lab = Lab()
    plan = block(300, concurrency=8, max_tokens=400, fixed_length=False)
    how = {"natural_output_tokens": 40}
    arms = [lab.client.run_block(lab.start(deployment(k, **how), f"{k}"), plan) for k in (0, 2)]
    lengths = [{r.request_id: r.output_tokens or 0 for r in seen.requests} for seen in arms]
    assert lengths[0] == lengths[1]
    # Geometric-like: the standard error of the mean of 300 is about 40/√300 = 2.3.
    assert np.mean(list(lengths[0].values())) == pytest.approx(40, abs=10)
    assert {r.finish_reason for r in arms[0].requests} == {"stop"}


def test_an_engine_is_built_anew_from_its_endpoint_in_another_process() -> None:
    here, there = Lab(), Lab()
    endpoint = here.start(deployment(2, jitter_sigma=0.1))
    assert there.client.run_block(endpoint, block(4)) == here.client.run_block(endpoint, block(4))


def test_telemetry_shows_the_leak() -> None:
    lab = Lab()
    endpoint = lab.start(
        deployment(drifts={"leak_bytes_per_s": 1e6}, memory_bytes=1e9, **MILLISECOND_STEPS)
    )
    watching = lab.telemetry.start(endpoint)
    lab.client.run_block(endpoint, block(1, max_tokens=500))
    first, last = watching.stop()
    assert (first.at_s, last.at_s) == (0.0, pytest.approx(0.5))
    assert first.values["process_rss_bytes"] == 1e9
    assert last.values["process_rss_bytes"] == pytest.approx(1e9 + 0.5e6)


def test_pairs_of_blocks_recover_the_true_speedup() -> None:
    """A B B A on the H100 profile with 3 % noise: within 4 standard errors of the closed form."""
    how = {"profile": "llama-8b-h100", "jitter_sigma": 0.03, "method": "eagle"}
    lab = Lab()
    ends = [lab.start(deployment(k, **how), f"arm{k}", timeout_s=60) for k in (0, 3)]
    logs = []
    for pair in range(16):
        plan = block(16, concurrency=4, max_tokens=64, first=16 * pair, tokens=200, category="chat")
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        seen = {arm: tpot_s(lab.client.run_block(ends[arm], plan)) for arm in order}
        logs.append(np.log(seen[0] / seen[1]))
    model = configuration(3, **how).model
    truth = true_speedup(model, batch=4, prompt_tokens=200, output_tokens=64, length=3)
    assert truth.speedup_tpot is not None
    error = float(np.std(logs, ddof=1)) / 4
    assert abs(float(np.mean(logs)) - np.log(truth.speedup_tpot)) < 4 * error + 0.01
    base = steady_state(model, batch=4, prompt_tokens=200, output_tokens=64)
    assert base.tpot_s == pytest.approx(0.00722, rel=0.01)
