"""What the results folder lies on: kind of file system, and kind of disk below it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from orchestrator.adapters.local.host_facts import ROOT, read_line

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_OVER_NETWORK = frozenset(
    {
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "ceph",
            "glusterfs",
            "lustre",
            "gpfs",
            "beegfs",
            "9p",
            "afs",
        ),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.gcsfuse", "fuse.s3fs"),
    }
)


def storage(folder: Path, root: Path = ROOT) -> dict[str, Any]:
    """`file_system` and `medium`: solid_state, rotational, memory or network.

    A virtual disk is what its host tells the guest. Undefined: None when the kernel does not say
    (overlay file systems of containers).
    """
    existing = _nearest_existing(folder)
    try:
        device = existing.stat().st_dev
    except OSError:
        return {"file_system": None, "medium": None, "device": None}
    number = f"{os.major(device)}:{os.minor(device)}"
    kind = _file_system(number, root)
    disk = _disk(number, root)
    if kind in _IN_MEMORY:
        medium: str | None = "memory"
    elif kind in _OVER_NETWORK:
        medium = "network"
    else:
        rotational = None if disk is None else read_line(disk / "queue/rotational")
        medium = {"0": "solid_state", "1": "rotational"}.get(rotational or "")
    return {"file_system": kind, "medium": medium, "device": None if disk is None else disk.name}


def _nearest_existing(folder: Path) -> Path:
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if path.exists())


def _file_system(number: str, root: Path) -> str | None:
    """The type in `mountinfo` of the mount with this device number."""
    for line in (read_line(root / "proc/self/mountinfo") or "").splitlines():
        fields, _, tail = line.partition(" - ")
        if number in fields.split()[2:3]:
            return tail.split()[0] if tail.split() else None
    return None


def _disk(number: str, root: Path) -> Path | None:
    """The whole disk's folder in sysfs: a partition's folder lies inside its disk's."""
    link = root / "sys/dev/block" / number
    if not link.exists():
        return None
    device = link.resolve()
    return device.parent if (device / "partition").exists() else device
