"""Environment variables of engine processes."""

from __future__ import annotations

import glob
import importlib.util
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

KV_CACHE_GIB = "1"
"""Bound on the KV cache of a CPU engine: without one the second engine on a host fails."""

ENGINE_CPUS = "ORCHESTRATOR_ENGINE_CPUS"

QUIET = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_COLOR": "0",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
}


def engine_environment(
    *, accelerators: bool, cpus: frozenset[int], given: Mapping[str, str]
) -> dict[str, str]:
    """Variables for a replica, `given` ones winning.

    `cpus` are the CPUs that compute. On a CPU engine the executor stays in the engine process (one
    import of vLLM less, and no scheduler spinning beside the worker on a small host).
    """
    variables = dict(QUIET)
    if not accelerators:
        variables["VLLM_CPU_KVCACHE_SPACE"] = KV_CACHE_GIB
        variables["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        variables["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(str(cpu) for cpu in sorted(cpus))
    variables.update(given)
    return variables


def openmp_environment(cpus: frozenset[int]) -> dict[str, str]:
    """Threads of a CPU engine whose executor lives in the engine process; as vLLM sets them.

    Read by the OpenMP library when it is loaded, so it has to be there before the process starts.
    """
    listed = [str(cpu) for cpu in sorted(cpus)]
    threads = {"OMP_NUM_THREADS": str(len(listed))}
    if "libiomp" not in preloads():
        return {**threads, "GOMP_CPU_AFFINITY": " ".join(listed)}
    return {
        **threads,
        "KMP_AFFINITY": f"granularity=fine,explicit,proclist=[{','.join(listed)}]",
        "KMP_BLOCKTIME": "5",
        "KMP_TPAUSE": "0",
    }


def compute_cpus(allowed: frozenset[int]) -> frozenset[int]:
    """CPUs for an engine's threads: one per physical core, and one core left out.

    That core is for the front end, the gateway and the load generator. An engine's threads wait for
    each other by spinning: on a core that they share, they stall, and so does the client's clock.
    With a single CPU there is nothing to leave out. `ORCHESTRATOR_ENGINE_CPUS=0,1` overrules it.
    """
    given = os.environ.get(ENGINE_CPUS)
    if given:
        return frozenset(int(cpu) for cpu in given.split(","))
    first_of_core = {min(_siblings(cpu) & allowed) for cpu in allowed}
    return frozenset(sorted(first_of_core)[1:]) or allowed


def client_cpus(allowed: frozenset[int]) -> frozenset[int]:
    """CPUs for the load generator: none that shares a core with those of `compute_cpus`.

    Where engines compute on every core, all of them: there is nothing to keep apart.
    """
    computing = compute_cpus(allowed)
    taken = frozenset(one for cpu in computing for one in _siblings(cpu))
    return (allowed - taken) or allowed


def _siblings(cpu: int) -> frozenset[int]:
    """CPUs that share a core with this one, itself included."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        parts = path.read_text(encoding="ascii").strip().split(",")
    except OSError:
        return frozenset({cpu})
    spans = [tuple(map(int, part.split("-"))) for part in parts]
    return frozenset(one for span in spans for one in range(span[0], span[-1] + 1)) | {cpu}


def preloads() -> str:
    """LD_PRELOAD for CPU engines: Intel's OpenMP where installed, else the one torch brings.

    vLLM warns of a significant loss of speed when speculation runs without Intel's OpenMP.
    """
    if sys.platform != "linux":
        return ""
    intel = Path(sys.prefix) / "lib" / "libiomp5.so"
    if platform.machine() in ("x86_64", "AMD64") and intel.exists():
        return str(intel)
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return ""
    found = glob.glob(str(Path(spec.origin).parent / "lib" / "libgomp*.so*"))  # noqa: PTH207
    return found[0] if found else ""


def allowed_cpus() -> frozenset[int]:
    """CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
