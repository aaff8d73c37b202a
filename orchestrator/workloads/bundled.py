"""The prompt sets that come with the product: `bundled:chat`, `bundled:code`, …"""

from __future__ import annotations

import difflib
from pathlib import Path

from orchestrator.errors import WorkloadError

FOLDER = Path(__file__).with_name("bundled")


def bundled_names() -> tuple[str, ...]:
    """Names of the sets that are installed."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.jsonl")))


def bundled_path(name: str) -> Path:
    """Raises: WorkloadError for a name that no bundled set has, with the nearest one."""
    names = bundled_names()
    if name in names:
        return FOLDER / f"{name}.jsonl"
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean bundled:{near[0]}?" if near else f"there are {', '.join(names)}"
    raise WorkloadError(f"prompts: must name a bundled set, got 'bundled:{name}'; {hint}")
