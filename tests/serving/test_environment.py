"""Settings of CPU engines."""

from __future__ import annotations

import sys

from orchestrator.serving import template
from orchestrator.serving.environment import (
    allowed_cpus,
    compute_cpus,
    engine_environment,
    openmp_environment,
)
from orchestrator.serving.lean_imports import left_out


def test_a_single_cpu_computes() -> None:
    assert compute_cpus(frozenset({0})) == {0}
    assert openmp_environment(frozenset({1, 0}))["OMP_NUM_THREADS"] == "2"


def test_one_core_is_left_to_the_front_end_and_the_client() -> None:
    assert compute_cpus(frozenset({1000, 1001})) == {1001}
    allowed = frozenset(range(1000, 1016))  # CPUs this machine has not got: each its own core

    assert compute_cpus(allowed) == allowed - {1000}


def test_the_kv_cache_is_bounded_and_nothing_is_reported() -> None:
    variables = engine_environment(accelerators=False, cpus=frozenset({0, 1}), given={})

    assert variables["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert variables["VLLM_CPU_OMP_THREADS_BIND"] == "0,1"
    assert variables["VLLM_NO_USAGE_STATS"] == "1"


def test_given_variables_win() -> None:
    given = {"VLLM_CPU_KVCACHE_SPACE": "4"}

    variables = engine_environment(accelerators=False, cpus=frozenset({0}), given=given)

    assert variables["VLLM_CPU_KVCACHE_SPACE"] == "4"


def test_accelerators_get_no_cpu_settings() -> None:
    variables = engine_environment(accelerators=True, cpus=frozenset({0}), given={})

    assert not [name for name in variables if name.startswith("VLLM_CPU")]


def test_a_template_suits_engines_of_one_device_with_our_threads() -> None:
    assert template.suits({}, {})
    assert template.suits({"tensor_parallel_size": 1}, {"VLLM_CPU_KVCACHE_SPACE": "4"})
    assert not template.suits({"tensor_parallel_size": 2}, {})
    assert not template.suits({}, {"VLLM_CPU_OMP_THREADS_BIND": "0"})
    assert not template.suits({"distributed_executor_backend": "mp"}, {})


def test_no_template_is_there_where_none_was_started() -> None:
    assert not template.reachable(None)
    assert not template.reachable("/nowhere/socket")


def test_packages_left_out_can_be_imported_afterwards() -> None:
    sys.modules.pop("colorsys", None)
    with left_out(("colorsys",)):
        try:
            import colorsys  # noqa: F401
        except ImportError:
            missing = True
        else:
            missing = False

    import colorsys as again

    assert missing
    assert again.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)


def test_this_process_may_run_somewhere() -> None:
    assert allowed_cpus()
