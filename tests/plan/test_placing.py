"""Slots on a cluster: one model of device, never a device twice, arms together where they fit."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.facts import NodeFacts
from orchestrator.plan.placing import Layout, Need, Place, Strategy, lay_out


def gpu_node(name: str, gpus: int, model: str = "NVIDIA H100", cpus: float = 32) -> NodeFacts:
    return NodeFacts(name, f"host of {name}", cpus, gpus, model)


def cpu_node(
    name: str, cpus: float = 8, host: str | None = None, *, cores: tuple[int, ...] = (), head=False
) -> NodeFacts:
    return NodeFacts(name, host or name, cpus, 0, "EPYC", cores=cores, is_head=head)


def nodes_of(layout: Layout) -> list[list[str]]:
    return [[place.node for place in slot.places] for slot in layout.slots]


def devices_taken(layout: Layout) -> Counter[str]:
    places = [place for slot in layout.slots for place in (*slot.places, *slot.spares)]
    return Counter(
        dict.fromkeys((), 0), **_summed(part for place in places for part in place.parts)
    )


def _summed(parts: object) -> dict[str, int]:
    found: dict[str, int] = {}
    for node, count in parts:  # type: ignore[attr-defined]
        found[node] = found.get(node, 0) + count
    return found


def test_separate_arms_sit_on_one_node_where_they_fit() -> None:
    found = lay_out([gpu_node("a", 4), gpu_node("b", 2)], Need("separate", 1))
    assert nodes_of(found) == [["a", "a"], ["a", "a"], ["b", "b"]]
    assert found.at_once == 3
    assert not any(slot.spans_nodes for slot in found.slots)


def test_what_is_left_on_two_nodes_makes_a_pair_across_them_and_says_so() -> None:
    found = lay_out([gpu_node("a", 3), gpu_node("b", 3)], Need("separate", 1))
    assert nodes_of(found) == [["a", "a"], ["b", "b"], ["a", "b"]]
    assert found.slots[2].spans_nodes
    assert any("span nodes" in note for note in found.notes)


def test_arms_that_share_or_take_turns_need_half_the_devices() -> None:
    for strategy in ("shared", "in_turn"):
        found = lay_out([gpu_node("a", 4)], Need(strategy, 2))
        assert [len(slot.places) for slot in found.slots] == [1, 1]


def test_a_sweep_keeps_to_one_model_of_device() -> None:
    nodes = [gpu_node("a", 2, "NVIDIA A100"), gpu_node("b", 4), gpu_node("c", 1, "NVIDIA A100")]
    found = lay_out(nodes, Need("separate", 1))
    assert nodes_of(found) == [["b", "b"], ["b", "b"]]
    assert found.model == "NVIDIA H100"
    assert any("left out: NVIDIA A100" in note for note in found.notes)


def test_the_file_may_name_the_model_as_ray_or_the_driver_does() -> None:
    nodes = [gpu_node("a", 2, "NVIDIA A100-SXM4-80GB"), gpu_node("b", 4)]
    found = lay_out(nodes, Need("separate", 1, accelerator="A100"))
    assert nodes_of(found) == [["a", "a"]]
    assert lay_out(nodes, Need("separate", 1, accelerator="L4")).slots == ()


def test_a_device_left_over_is_a_spare_of_a_slot_on_its_node() -> None:
    found = lay_out([gpu_node("a", 3)], Need("separate", 1))
    assert [len(slot.spares) for slot in found.slots] == [1]


def test_an_engine_over_nodes_gets_one_bundle_a_device() -> None:
    """Two arms of 8 GPUs (tensor parallel 4, pipeline parallel 2) on four nodes of 4."""
    nodes = [gpu_node(name, 4) for name in "abcd"]
    found = lay_out(nodes, Need("separate", 8, across_nodes=True))
    (slot,) = found.slots
    assert [place.parts for place in slot.places] == [(("a", 4), ("b", 4)), (("c", 4), ("d", 4))]
    assert slot.places[0].bundles(one_device_each=True) == [
        (node, {"CPU": 1.0, "GPU": 1.0}) for node in "aaaabbbb"
    ]


def test_an_engine_in_one_process_gets_one_bundle_of_all_its_devices() -> None:
    place = Place((("a", 4),), cpus=4)
    assert place.bundles(one_device_each=False) == [("a", {"CPU": 4.0, "GPU": 4.0})]


def test_without_the_ray_executor_an_engine_stays_on_one_node() -> None:
    assert lay_out([gpu_node("a", 4), gpu_node("b", 4)], Need("shared", 8)).slots == ()


def test_a_core_is_left_to_the_load_generator() -> None:
    (slot,) = lay_out([cpu_node("a", 8)], Need("shared", 0)).slots
    assert slot.places[0].cpus == 7
    (small,) = lay_out([cpu_node("a", 1)], Need("shared", 0)).slots
    assert small.places[0].cpus == 0.5
    (gpus,) = lay_out([gpu_node("a", 2, cpus=2)], Need("separate", 1)).slots
    assert gpus.places[0].cpus == 0  # two cores for two engines would leave none


def test_the_head_node_computes_only_where_there_is_no_other() -> None:
    head, other = cpu_node("head", head=True), cpu_node("other")
    assert nodes_of(lay_out([head, other], Need("shared", 0))) == [["other"]]
    assert nodes_of(lay_out([head], Need("shared", 0))) == [["head"]]


def test_nodes_of_one_machine_measure_one_at_a_time() -> None:
    nodes = [cpu_node("a", host="box", cores=(0, 1)), cpu_node("b", host="box", cores=(0, 1))]
    found = lay_out(nodes, Need("shared", 0))
    assert (len(found.slots), found.at_once) == (2, 1)
    apart = [cpu_node("a", host="box", cores=(0,)), cpu_node("b", host="box", cores=(1,))]
    assert lay_out(apart, Need("shared", 0)).at_once == 2


def test_separate_arms_on_processors_need_two_machines() -> None:
    assert lay_out([cpu_node("a")], Need("separate", 0)).slots == ()
    same = [cpu_node("a", host="box"), cpu_node("b", host="box")]
    assert lay_out(same, Need("separate", 0)).slots == ()
    assert nodes_of(lay_out([cpu_node("a"), cpu_node("b")], Need("separate", 0))) == [["a", "b"]]


@given(
    gpus=st.lists(st.integers(0, 8), min_size=1, max_size=6),
    strategy=st.sampled_from(["separate", "shared", "in_turn"]),
    each=st.integers(1, 5),
    across=st.booleans(),
)
def test_no_device_is_given_twice_and_none_is_wasted(
    gpus: list[int], strategy: Strategy, each: int, across: bool
) -> None:
    nodes = [gpu_node(str(index), count) for index, count in enumerate(gpus)]
    found = lay_out(nodes, Need(strategy, each, across_nodes=across))
    taken = devices_taken(found)
    assert all(taken[node.id] <= node.gpus for node in nodes)
    arms = 2 if strategy == "separate" else 1
    assert all(len(slot.places) == arms for slot in found.slots)
    assert found.at_once == len(found.slots)
    if across:
        assert len(found.slots) == sum(gpus) // (arms * each) or any(s.spares for s in found.slots)


@pytest.mark.parametrize("strategy", ["separate", "shared", "in_turn"])
def test_nothing_fits_on_nothing(strategy: Strategy) -> None:
    assert lay_out([], Need(strategy, 1)) == Layout((), None)
