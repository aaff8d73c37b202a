"""What one node of a cluster has, as its kernel and its driver tell it. Imports no Ray."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from orchestrator.adapters.local import host_facts
from orchestrator.adapters.nvml import accelerators, nvml_or_none
from orchestrator.plan.facts import NodeFacts

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOST_LINKS = 18


def this_node(
    id: str = "",
    *,
    cpus: float | None = None,
    gpus: float | None = None,
    model: str | None = None,
    is_head: bool = False,
) -> NodeFacts:
    """The node that this process runs on.

    `cpus`, `gpus` and `model` as the cluster counts and names them, where there is one: it may be
    told to use less than there is. The driver's name for a device is taken before the cluster's.
    """
    found = accelerators() if gpus is None or gpus > 0 else []
    names = sorted({str(device["model"]) for device in found if device["model"]})
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    devices = float(len(found)) if gpus is None else gpus
    processor = host_facts.processor()["model"] or "processor"
    return NodeFacts(
        id=id,
        host=host_facts.read_line(_BOOT_ID) or socket.gethostname(),
        cpus=float(len(cores) or os.cpu_count() or 1) if cpus is None else cpus,
        gpus=devices,
        model=(" + ".join(names) or model or "GPU") if devices else str(processor),
        memory_bytes=min((d["memory_bytes"] for d in found if d["memory_bytes"]), default=None),
        interconnect=interconnect(nvml_or_none()) if devices > 1 else None,
        cores=tuple(cores),
        is_head=is_head,
    )


def interconnect(nvml: Any | None) -> str | None:
    """`NVLink` where the first device has an active link, else `PCIe`; None where not told."""
    if nvml is None or nvml.nvmlDeviceGetCount() < 2:
        return None
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    for link in range(_MOST_LINKS):
        try:
            if nvml.nvmlDeviceGetNvLinkState(handle, link):
                return "NVLink"
        except nvml.NVMLError:
            break
    return "PCIe"
