"""What the kernel says of this host: processor, memory, limits of the container, system.

Every reader takes `root`, the folder that `proc` and `sys` are under; None means not told.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

import psutil

ROOT = Path("/")
_WORTH_NAMING = frozenset(
    {
        *("avx", "avx2", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni"),
        *("amx_tile", "amx_bf16", "amx_int8", "asimd", "sve", "bf16", "i8mm"),
    }
)
_UNLIMITED_V1 = 1 << 60


def read_line(path: Path) -> str | None:
    """The file's text without white space around it; None when it is not there or not readable."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def processor(root: Path = ROOT) -> dict[str, Any]:
    """Model, cores, instruction sets that matter to an engine, clock and governor."""
    cpuinfo = read_line(root / "proc/cpuinfo") or ""
    folder = root / "sys/devices/system/cpu"
    governors = {read_line(path) for path in folder.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return {
        "model": _processor_model(cpuinfo),
        "architecture": platform.machine() or None,
        "physical_cores": psutil.cpu_count(logical=False),
        "logical_cores": psutil.cpu_count(logical=True),
        "usable_cores": _usable_cores(),
        "instruction_sets": sorted(_flags(cpuinfo) & _WORTH_NAMING),
        "governor": "/".join(sorted(g for g in governors if g)) or None,
        "turbo": _turbo(folder),
        "clock_max_hz": _kilohertz(read_line(folder / "cpu0/cpufreq/cpuinfo_max_freq")),
        "clock_hz": _mean_clock_hz(cpuinfo),
    }


def native_bfloat16(root: Path = ROOT) -> tuple[str, ...]:
    """The instruction sets here that compute in bfloat16; without one it is emulated, slowly."""
    flags = _flags(read_line(root / "proc/cpuinfo") or "")
    return tuple(sorted(flags & {"avx512_bf16", "amx_bf16", "bf16"}))


def memory() -> dict[str, Any]:
    """Bytes in all, and bytes that could be had now."""
    now = psutil.virtual_memory()
    return {
        "total_bytes": now.total,
        "available_bytes": now.available,
        "swap_total_bytes": psutil.swap_memory().total,
    }


def container_limits(root: Path = ROOT) -> dict[str, Any]:
    """The tightest limit on the way from this process's control group to the root; v2, then v1.

    Unit: `cpu_cores` cores, `memory_bytes` bytes. Undefined: None where there is no limit.
    """
    own = read_line(root / "proc/self/cgroup") or ""
    mount = root / "sys/fs/cgroup"
    unified = next((line[3:] for line in own.splitlines() if line.startswith("0::")), None)
    cores: list[float] = []
    sizes: list[int] = []
    if unified is not None:
        for folder in _upwards(mount, unified):
            quota, _, period = (read_line(folder / "cpu.max") or "").partition(" ")
            if quota.isdigit() and period.isdigit() and int(period):
                cores.append(int(quota) / int(period))
            size = read_line(folder / "memory.max") or ""
            if size.isdigit():
                sizes.append(int(size))
    quota = read_line(mount / "cpu/cpu.cfs_quota_us") or ""
    period = read_line(mount / "cpu/cpu.cfs_period_us") or ""
    if quota.isdigit() and period.isdigit() and int(period):
        cores.append(int(quota) / int(period))
    size = read_line(mount / "memory/memory.limit_in_bytes") or ""
    if size.isdigit() and int(size) < _UNLIMITED_V1:
        sizes.append(int(size))
    return {
        "cpu_cores": min(cores, default=None),
        "memory_bytes": min(sizes, default=None),
        "inside_container": (root / ".dockerenv").exists()
        or (root / "run/.containerenv").exists()
        or bool(re.search(r"docker|kubepods|containerd|lxc", own)),
    }


def system(root: Path = ROOT) -> dict[str, Any]:
    """Operating system, kernel, C library."""
    release = read_line(root / "etc/os-release") or ""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', release, re.MULTILINE)
    libc = " ".join(platform.libc_ver()).strip()
    return {
        "os": name[1] if name else platform.system() or None,
        "kernel": platform.release() or None,
        "libc": libc or None,
        "hugepages": _chosen(read_line(root / "sys/kernel/mm/transparent_hugepage/enabled")),
    }


def load_average() -> list[float] | None:
    """Over 1, 5 and 15 minutes; None where the system has none."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (OSError, AttributeError):
        return None


def _processor_model(cpuinfo: str) -> str | None:
    named = re.search(r"^(?:model name|Processor|cpu model)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    if named:
        return named[1].strip()
    maker = re.search(r"^CPU implementer\s*:\s*(\S+)$", cpuinfo, re.MULTILINE)
    part = re.search(r"^CPU part\s*:\s*(\S+)$", cpuinfo, re.MULTILINE)
    if maker and part:
        return f"implementer {maker[1]} part {part[1]}"
    return platform.processor() or None


def _flags(cpuinfo: str) -> set[str]:
    found = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return set(found[1].split()) if found else set()


def _mean_clock_hz(cpuinfo: str) -> float | None:
    clocks = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", cpuinfo, re.MULTILINE)]
    return round(sum(clocks) / len(clocks) * 1e6) if clocks else None


def _turbo(folder: Path) -> bool | None:
    no_turbo = read_line(folder / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = read_line(folder / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _kilohertz(text: str | None) -> float | None:
    return float(text) * 1e3 if text and text.isdigit() else None


def _usable_cores() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count()


def _chosen(text: str | None) -> str | None:
    found = re.search(r"\[(\w+)\]", text or "")
    return found[1] if found else None


def _upwards(mount: Path, relative: str) -> list[Path]:
    parts = [part for part in relative.split("/") if part not in ("", ".", "..")]
    return [mount.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
