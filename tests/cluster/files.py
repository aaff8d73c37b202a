"""Where the files of `cluster/` lie, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "cluster"
KUBERNETES = CLUSTER / "kubernetes"


def documents(file: Path) -> list[Any]:
    """The documents of a YAML file, empty ones left out."""
    found = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    return [document for document in found if document is not None]


def document(file: Path) -> Any:
    (only,) = documents(file)
    return only


def environment_of(container: dict[str, Any]) -> dict[str, Any]:
    """Name -> the whole entry of a container's `env`."""
    return {entry["name"]: entry for entry in container.get("env", [])}


def platform_ray_settings() -> dict[str, str]:
    """What the platform sets for a Ray that it starts itself; read without importing Ray."""
    import ast

    source = (ROOT / "orchestrator/adapters/ray_local.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "LOCAL_VARIABLES":
            assert node.value is not None
            settings: dict[str, str] = ast.literal_eval(node.value)
            return settings
    raise AssertionError("ray_local.py has no LOCAL_VARIABLES; adapt this test to what replaced it")
