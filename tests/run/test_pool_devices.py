"""Places, turns, spares and lost nodes: what the pool does beyond one device."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from orchestrator.errors import DeploymentError, DevicesLost
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.ports import Endpoint, Sleeper
from orchestrator.run.pool import Pool
from orchestrator.run.slots import SlotDevices
from tests.run.fakes import BASELINE, FakeDeployer, speculative


def pair(k: int) -> DeploymentPair:
    return DeploymentPair(BASELINE, speculative(k))


@dataclass
class LosableDeployer(FakeDeployer):
    """A node that can be lost."""

    lost: bool = False

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        if self.lost:
            raise DevicesLost("devices_lost", "node gone")
        return super().start(deployment, name=name, timeout_s=timeout_s)

    def healthy(self, name: str) -> bool:
        if self.lost:
            raise DevicesLost("devices_lost", "node gone")
        return super().healthy(name)


@dataclass
class SleepingDeployer(FakeDeployer):
    """Remembers who is awake."""

    awake: set[str] = field(default_factory=set)
    most_awake: int = 0

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        endpoint = super().start(deployment, name=name, timeout_s=timeout_s)
        self.wake(name)
        return endpoint

    def can_sleep(self, name: str) -> bool:
        return True

    def sleep(self, name: str) -> None:
        self.awake.discard(name)

    def wake(self, name: str) -> None:
        self.awake.add(name)
        self.most_awake = max(self.most_awake, len(self.awake))

    def stop(self, name: str) -> None:
        super().stop(name)
        self.awake.discard(name)


@dataclass
class OneAtATime(FakeDeployer):
    """Fails when two engines are up: the second would not find memory."""

    up: set[str] = field(default_factory=set)

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        if self.up:
            raise DeploymentError("out_of_memory", "the other engine holds the device")
        self.up.add(name)
        return super().start(deployment, name=name, timeout_s=timeout_s)

    def healthy(self, name: str) -> bool:
        return name in self.up

    def stop(self, name: str) -> None:
        self.up.discard(name)


def test_separate_arms_run_on_devices_of_their_own_and_the_baseline_stays() -> None:
    left, right = FakeDeployer(), FakeDeployer()
    pool = Pool(devices=[SlotDevices((left, right))])
    for k in (2, 4, 8):
        pool.release(pool.lease(pair(k), holder=f"k{k}"))
    assert left.started == ["baseline"]
    assert right.started == ["ngram K=2", "ngram K=4", "ngram K=8"]
    assert len(right.stopped) == 2


def test_engines_that_sleep_take_turns_and_only_one_is_ever_awake() -> None:
    deployer = SleepingDeployer()
    assert isinstance(deployer, Sleeper)
    pool = Pool(devices=[SlotDevices((deployer,))], in_turn=True)
    lease = pool.lease(pair(4), holder="t")
    for arm in ("baseline", "speculative", "speculative", "baseline"):
        active = pool.activate(lease, arm)
        assert deployer.awake == {active.endpoint.name}
        assert not active.fresh
    assert deployer.most_awake == 1
    assert len(deployer.started) == 2
    assert pool.broken_arms(lease) == ()


def test_engines_that_cannot_sleep_are_started_again_for_their_turn() -> None:
    deployer = OneAtATime()
    pool = Pool(devices=[SlotDevices((deployer,))], in_turn=True)
    lease = pool.lease(pair(4), holder="t")
    turns = [pool.activate(lease, arm) for arm in ("baseline", "speculative", "speculative")]
    assert [turn.fresh for turn in turns] == [False, True, False]
    assert pool.broken_arms(lease) == ()
    assert len(deployer.up) == 1


def test_a_lost_node_is_given_up_and_the_trial_gets_another() -> None:
    first, second = LosableDeployer(), LosableDeployer()
    pool = Pool(devices=[SlotDevices((first,)), SlotDevices((second,))])
    lease = pool.lease(pair(4), holder="t1")
    first.lost = True
    with pytest.raises(DevicesLost):
        pool.broken_arms(lease)
    pool.release(lease, broken=["baseline", "speculative"])
    again = pool.lease(pair(4), holder="t1")
    assert sorted(second.started) == ["baseline", "ngram K=4"]
    pool.release(again)
    second.lost = True
    with pytest.raises(DevicesLost, match="node gone"):
        pool.lease(pair(4), holder="t2")


def test_a_start_that_a_lost_node_ended_is_not_held_against_the_deployment() -> None:
    first, second = LosableDeployer(lost=True), LosableDeployer()
    pool = Pool(devices=[SlotDevices((first,)), SlotDevices((second,))])
    assert pool.lease(pair(4), holder="t1").speculative.name.startswith("ngram")
    assert second.started


def test_slots_with_a_common_device_are_not_leased_together() -> None:
    one, two = FakeDeployer(), FakeDeployer()
    cores = frozenset({"core 0"})
    pool = Pool(devices=[SlotDevices((one,), devices=cores), SlotDevices((two,), devices=cores)])
    lease = pool.lease(pair(4), holder="t1")
    got: list[str] = []
    waiter = threading.Thread(target=lambda: got.append(pool.lease(pair(4), holder="t2").id))
    waiter.start()
    waiter.join(timeout=0.05)
    assert got == []
    pool.release(lease)
    waiter.join(timeout=10)
    assert len(got) == 1
    assert two.started == []  # the slot that is warm was taken again


def test_the_next_engine_is_prepared_on_spare_devices_while_a_pair_is_measured() -> None:
    ready = threading.Event()

    class Announcing(FakeDeployer):
        def facts(self, name: str):  # type: ignore[no-untyped-def]
            if name.startswith("ngram"):
                ready.set()
            return super().facts(name)

    left, right, spare = FakeDeployer(), FakeDeployer(), Announcing()
    pool = Pool(
        devices=[SlotDevices((left, right), spares=(spare,))],
        coming=[BASELINE, speculative(2), speculative(4)],
    )
    lease = pool.lease(pair(2), holder="t1")
    assert ready.wait(10)
    assert spare.started == ["ngram K=4"]
    pool.release(lease)
    pool.lease(pair(4), holder="t2")
    assert (left.started, right.started) == (["baseline"], ["ngram K=2"])


def test_a_trial_that_comes_back_gets_what_its_dead_process_held() -> None:
    pool = Pool(FakeDeployer())
    pool.lease(pair(4), holder="t1")
    pool.lease(pair(4), holder="t1")  # would wait for ever otherwise


def test_a_lease_says_how_long_its_engines_took() -> None:
    ticks = iter(range(1000))
    pool = Pool(FakeDeployer(), monotonic=lambda: float(next(ticks)))
    first = pool.lease(pair(4), holder="t1")
    pool.release(first)
    second = pool.lease(pair(4), holder="t2")
    assert first.starting_s > second.starting_s
