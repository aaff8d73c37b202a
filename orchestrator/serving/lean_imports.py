"""Importing vLLM without packages that serving text never uses.

transformers imports scikit-learn and SciPy, where they are installed, for generation helpers and
losses of its own. That is a sixth of the CPU time of importing vLLM, paid in every process.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator

LEFT_OUT = ("sklearn", "scipy")

ENGINE_MODULES = (
    "vllm.v1.engine.core",
    "vllm.v1.executor.uniproc_executor",
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.attention.backends.cpu_attn",
    "vllm.model_executor.models.llama",
    "vllm.model_executor.model_loader.default_loader",
    "vllm.v1.structured_output",
)
"""What the process of a CPU engine needs; one that a later vLLM has not got is passed over.

Nothing here may import numba: vLLM 0.32 goes through every loaded module when a worker starts, and
stumbles over llvmlite's.
"""


@contextlib.contextmanager
def left_out(names: tuple[str, ...] = LEFT_OUT) -> Iterator[None]:
    """While this lasts the packages look as if they were not installed; afterwards they can be
    imported as ever. Packages that are loaded already stay."""
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in hidden:
            if sys.modules.get(name) is None:
                sys.modules.pop(name, None)


def import_engine() -> None:
    """Imports what an engine process needs."""
    with left_out():
        for name in ENGINE_MODULES:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
