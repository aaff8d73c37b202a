"""Engine starts = distinct deployments; a slot is leased whole; what is broken is not reused."""

from __future__ import annotations

import threading

import pytest

from orchestrator.errors import DeploymentError
from orchestrator.plan.deployment import DeploymentPair
from orchestrator.run.pool import Pool
from tests.run.fakes import BASELINE, FakeDeployer, speculative


def pair(k: int) -> DeploymentPair:
    return DeploymentPair(BASELINE, speculative(k))


def test_two_trials_of_one_pair_start_two_engines_not_four() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer)
    for holder in ("t1", "t2"):
        pool.release(pool.lease(pair(4), holder=holder))
    assert sorted(deployer.started) == ["baseline", "ngram K=4"]
    assert pool.counts().engine_starts == 2


def test_the_baseline_stays_warm_while_drafts_come_and_go() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer, warm_per_slot=2)
    for k in (2, 4, 8):
        pool.release(pool.lease(pair(k), holder=f"k{k}"))
    assert deployer.started.count("baseline") == 1
    assert [name.split("-")[0] for name in deployer.stopped] == ["ngram", "ngram"]


def test_with_room_nothing_is_evicted() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer, warm_per_slot=3)
    for k in (2, 4, 2):
        pool.release(pool.lease(pair(k), holder=f"k{k}"))
    assert deployer.stopped == []
    assert len(deployer.started) == 3


def test_a_second_trial_waits_for_the_slot() -> None:
    pool = Pool(FakeDeployer())
    first = pool.lease(pair(4), holder="t1")
    got: list[str] = []
    waiter = threading.Thread(target=lambda: got.append(pool.lease(pair(4), holder="t2").id))
    waiter.start()
    waiter.join(timeout=0.05)
    assert got == []
    pool.release(first)
    waiter.join(timeout=10)
    assert len(got) == 1


def test_two_slots_lease_two_pairs_at_once_each_with_its_own_engines() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer, slots=2)
    leases = [pool.lease(pair(4), holder=holder) for holder in ("t1", "t2")]
    assert len({lease.baseline.name for lease in leases}) == 2
    assert len(deployer.started) == 4


def test_a_free_slot_that_is_already_warm_is_preferred() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer, slots=2)
    pool.release(pool.lease(pair(2), holder="t1"))
    pool.release(pool.lease(pair(2), holder="t2"))
    assert len(deployer.started) == 2


def test_a_deployment_that_did_not_start_is_not_tried_again() -> None:
    deployer = FakeDeployer(refuse={"ngram K=8"})
    pool = Pool(deployer)
    for holder in ("t1", "t2"):
        with pytest.raises(DeploymentError, match="no room for the draft"):
            pool.lease(pair(8), holder=holder)
    assert pool.counts().failed_starts == 1
    pool.release(pool.lease(pair(4), holder="t3"))  # the slot is free again, the baseline warm
    assert deployer.started.count("baseline") == 1


def test_a_broken_engine_is_stopped_and_started_anew() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer)
    lease = pool.lease(pair(4), holder="t1")
    deployer.dead.add(lease.speculative.name)
    assert pool.broken_arms(lease) == ("speculative",)
    pool.release(lease, broken=["speculative"])
    deployer.dead.clear()
    deployer.stopped.clear()
    pool.lease(pair(4), holder="t2")
    assert deployer.started.count("ngram K=4") == 2


def test_an_engine_that_died_between_trials_is_replaced() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer)
    lease = pool.lease(pair(4), holder="t1")
    pool.release(lease)
    deployer.dead.add(lease.baseline.name)
    pool.lease(pair(4), holder="t2")
    assert deployer.started.count("baseline") == 2


def test_what_a_dead_trial_held_can_be_reclaimed() -> None:
    pool = Pool(FakeDeployer())
    lost = pool.lease(pair(4), holder="dead")
    pool.reclaim("dead")
    pool.lease(pair(4), holder="next")  # would wait for ever otherwise
    pool.release(lost)  # a late release of the lost lease takes nothing from the new one
    assert pool.broken_arms(lost) == ()


def test_closing_wakes_and_refuses_whoever_waits() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer)
    pool.lease(pair(4), holder="t1")
    refused: list[DeploymentError] = []

    def wait() -> None:
        try:
            pool.lease(pair(4), holder="t2")
        except DeploymentError as error:
            refused.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    pool.close()
    waiter.join(timeout=10)
    assert deployer.closed
    assert len(refused) == 1


def test_a_pool_for_fewer_than_two_engines_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="warm_per_slot >= 2"):
        Pool(FakeDeployer(), warm_per_slot=1)


def test_with_room_the_plans_next_engines_start_along_and_only_once() -> None:
    deployer = FakeDeployer()
    pool = Pool(deployer, warm_per_slot=3, coming=[BASELINE, speculative(4), speculative(8)])
    pool.release(pool.lease(pair(4), holder="t1"))
    assert sorted(deployer.started) == ["baseline", "ngram K=4", "ngram K=8"]
    pool.release(pool.lease(pair(8), holder="t2"))
    assert len(deployer.started) == 3


def test_an_engine_that_fails_when_started_along_fails_only_the_trial_that_needs_it() -> None:
    deployer = FakeDeployer(refuse={"ngram K=8"})
    pool = Pool(deployer, warm_per_slot=3, coming=[BASELINE, speculative(4), speculative(8)])
    pool.release(pool.lease(pair(4), holder="t1"))
    with pytest.raises(DeploymentError, match="no room for the draft"):
        pool.lease(pair(8), holder="t2")
