"""Arithmetic on token counts and a stated speed."""

from __future__ import annotations

import pytest

from orchestrator.plan.estimate import Speed, assumed_speed, block_s
from orchestrator.plan.expand import make_plan
from orchestrator.plan.facts import ClusterFacts, ModelFacts
from tests.plan.planned import CHAT, NGRAM, experiment, facts_for, plan

ONE_KIND = [NGRAM | {"speculation_length": 2}]


def speed() -> Speed:
    """A step of 10 ms and 1 ms a token."""
    return Speed(step_s=0.010, token_s=0.001, engine_start_s=20.0, said="a machine by hand")


def test_a_closed_block_by_hand() -> None:
    """4 in flight, 2 waves: 2 x (4 x 100 x 1 ms + 32 x (10 + 4) ms) = 2 x (0.4 + 0.448) s."""
    trial = plan(experiment(batch_size=4, measure={"requests_per_block": 2})).trials[1]
    assert block_s(trial, 8, speed(), prompt_tokens=100) == pytest.approx(1.696)


def test_an_open_block_lasts_as_long_as_its_arrivals() -> None:
    """10 requests at 2 a second take 5 s, and the last batch of 8 its 0.8 + 32 x 18 ms."""
    load = {"mode": "open", "rate_rps": 2}
    trial = plan(experiment(batch_size=8, load=load, measure={"requests_per_block": 10})).trials[1]
    assert block_s(trial, 10, speed(), prompt_tokens=100) == pytest.approx(5 + 0.8 + 0.576)


def test_a_whole_plan_by_hand() -> None:
    """Two trials, 3 engines x 20 s; block 1 x (0.1 + 32 x 11 ms) = 0.452 s.

    Least: 20 + 60 + 2 trials x (2 + 2 arms x (1 + 4) x 0.452); most: (1 + 10) instead.
    """
    spec = experiment(
        speculation=ONE_KIND,
        measure={"pairs": {"min": 4, "max": 10}},
        placement={"gpus_per_replica": 1},
    )
    planned = make_plan(
        spec, prompt_sets=facts_for(spec), cluster=ClusterFacts(gpus=2), speed=speed()
    )
    estimate = planned.estimate
    assert estimate.start_s == 60
    assert estimate.least_s == pytest.approx(20 + 60 + 2 * 2 + 4 * 5 * 0.452)
    assert estimate.most_s == pytest.approx(20 + 60 + 2 * 2 + 4 * 11 * 0.452)
    assert estimate.devices_per_pair == 2
    assert estimate.device_hours[1] == pytest.approx(2 * estimate.most_s / 3600)
    assert "a machine by hand" in estimate.assumption
    assert "not a measurement" in estimate.assumption


def test_more_devices_run_more_pairs_at_once() -> None:
    spec = experiment(placement={"gpus_per_replica": 1})
    alone = plan(spec, cluster=ClusterFacts(gpus=2)).estimate
    wide = plan(spec, cluster=ClusterFacts(gpus=6)).estimate
    assert (alone.pairs_at_once, wide.pairs_at_once) == (1, 3)
    # All but the 20 s before and after, which the four further devices are held for as well.
    assert wide.most_s - 20 == pytest.approx((alone.most_s - 20) / 3)
    more = 4 * 20 / 3600
    assert wide.device_hours[1] == pytest.approx(alone.device_hours[1] + more)


def test_the_assumed_speeds_are_those_of_their_references() -> None:
    cpu = assumed_speed(ModelFacts(parameter_bytes=269_000_000), gpus=0)
    assert 8 / (cpu.step_s + 8 * cpu.token_s) == pytest.approx(194, rel=0.02)
    assert 1 / (cpu.step_s + cpu.token_s) == pytest.approx(34, rel=0.02)
    gpu = assumed_speed(ModelFacts(parameter_bytes=16_000_000_000), gpus=1)
    assert gpu.step_s == pytest.approx(5.886e-3)


def test_a_size_that_is_not_known_is_said() -> None:
    assert "size not known" in plan(experiment(workloads=[CHAT])).estimate.assumption
