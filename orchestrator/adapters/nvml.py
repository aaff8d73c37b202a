"""NVIDIA devices as their driver reports them: what they are, and how they do during a block.

| key (with the device's index: `gpu_power_w/0`) | meaning |
|---|---|
| `gpu_utilization` | fraction of time a kernel was running, 0..1 |
| `gpu_memory_used_bytes` | in use on the device, by anyone |
| `gpu_memory_total_bytes` | what the device has |
| `gpu_power_w` | draw |
| `gpu_sm_clock_hz` | clock of the multiprocessors at the moment |
| `gpu_temperature_c` | of the chip |
| `gpu_throttled` | 1 when the clock is held down for a reason other than idle or chosen clocks |
| `gpu_throttle_reasons` | the driver's bit field that `gpu_throttled` was judged by |
| `gpu_clock_changed` | 1 when chosen clocks or the power limit are not what they were last time |
| `gpu_foreign_processes` | compute processes that are neither the engine's nor ours |
| `gpu_ecc_uncorrected` | uncorrected memory errors since the driver was loaded |

What a device or driver does not tell is left out of the sample, never 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.adapters.local.process_tree import with_descendants
from orchestrator.adapters.local.sampling import PERIOD_S, SamplingRun
from orchestrator.ports import Endpoint, TelemetryRun

HARMLESS_REASONS = 0x1 | 0x2
"""Idle, and application clocks chosen by the operator (nvmlClocksEventReason…)."""


def nvml_or_none() -> Any | None:
    """The module `pynvml`, initialised; None where there is no driver or no device."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return pynvml if pynvml.nvmlDeviceGetCount() > 0 else None
    except pynvml.NVMLError:
        return None


def accelerators(nvml: Any | None = None) -> list[dict[str, Any]]:
    """One entry per device; an empty list where there is none. None for what is not told."""
    nvml = nvml_or_none() if nvml is None else nvml
    if nvml is None:
        return []
    driver = _text(_ask(nvml, nvml.nvmlSystemGetDriverVersion))
    cuda = _ask(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    cuda_text = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
    return [
        {"index": index, **_describe(nvml, index), "driver": driver, "cuda": cuda_text}
        for index in range(nvml.nvmlDeviceGetCount())
    ]


@dataclass
class NvmlTelemetry:
    """Implements ports.Telemetry for the devices `indices` (all of them when None).

    `ours` names further processes that belong to the product (the other arm's engine, waiting on
    the same device). `nvml` is the initialised module, handed in so that it can be another one.
    """

    nvml: Any
    indices: Sequence[int] | None = None
    period_s: float = PERIOD_S
    ours: Callable[[], Iterable[int]] = tuple
    tree: Callable[[Iterable[int]], Collection[int]] = with_descendants
    _settings: dict[int, tuple[float | None, ...]] = field(default_factory=dict, init=False)

    def start(self, endpoint: Endpoint) -> TelemetryRun:
        return SamplingRun(self.reader(endpoint), self.period_s)

    def reader(self, endpoint: Endpoint) -> Callable[[], dict[str, float]]:
        """What one sample reads; a changed setting stays reported to the end of its block."""
        nvml = self.nvml
        indices = range(nvml.nvmlDeviceGetCount()) if self.indices is None else self.indices
        handles = {index: nvml.nvmlDeviceGetHandleByIndex(index) for index in indices}
        changed: set[int] = set()

        def read() -> dict[str, float]:
            known = _Lazy(lambda: set(self.tree([*endpoint.pids, os.getpid(), *self.ours()])))
            values: dict[str, float] = {}
            for index, handle in handles.items():
                settings = _settings(nvml, handle)
                # Against the last reading of any block: the two arms of a pair must match too.
                if self._settings.setdefault(index, settings) != settings:
                    changed.add(index)
                self._settings[index] = settings
                found = _readings(nvml, handle, known)
                if any(setting is not None for setting in settings):
                    found["gpu_clock_changed"] = float(index in changed)
                values.update(
                    {f"{key}/{index}": value for key, value in found.items() if value is not None}
                )
            return values

        return read


@dataclass
class _Lazy:
    """The process table is looked through only when a process is on a device."""

    make: Callable[[], set[int]]
    made: set[int] | None = None

    def __call__(self) -> set[int]:
        if self.made is None:
            self.made = self.make()
        return self.made


def _readings(
    nvml: Any, handle: Any, known: Callable[[], Collection[int]]
) -> dict[str, float | None]:
    utilization = _ask(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    power_mw = _ask(nvml, nvml.nvmlDeviceGetPowerUsage, handle)
    clock_mhz = _ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)
    reasons = _throttle_reasons(nvml, handle)
    processes = _ask(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return {
        "gpu_utilization": None if utilization is None else utilization.gpu / 100,
        "gpu_memory_used_bytes": None if memory is None else float(memory.used),
        "gpu_memory_total_bytes": None if memory is None else float(memory.total),
        "gpu_power_w": None if power_mw is None else power_mw / 1e3,
        "gpu_sm_clock_hz": None if clock_mhz is None else clock_mhz * 1e6,
        "gpu_temperature_c": _number(
            _ask(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
        ),
        "gpu_throttled": None if reasons is None else float(bool(reasons & ~HARMLESS_REASONS)),
        "gpu_throttle_reasons": _number(reasons),
        "gpu_foreign_processes": None if processes is None else _foreign(processes, known),
        "gpu_ecc_uncorrected": _number(
            _ask(
                nvml,
                nvml.nvmlDeviceGetTotalEccErrors,
                handle,
                nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                nvml.NVML_VOLATILE_ECC,
            )
        ),
    }


def _foreign(processes: Sequence[Any], known: Callable[[], Collection[int]]) -> float:
    if not processes:
        return 0.0
    ours = known()
    return float(sum(process.pid not in ours for process in processes))


def _throttle_reasons(nvml: Any, handle: Any) -> int | None:
    # The call was renamed with driver 535; older drivers know only the second.
    reasons = _ask(nvml, nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    if reasons is None:
        reasons = _ask(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    return None if reasons is None else int(reasons)


def _settings(nvml: Any, handle: Any) -> tuple[float | None, ...]:
    """What an operator chooses: application clock, clock ceiling, power limit."""
    return (
        _number(_ask(nvml, nvml.nvmlDeviceGetApplicationsClock, handle, nvml.NVML_CLOCK_SM)),
        _number(_ask(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM)),
        _number(_ask(nvml, nvml.nvmlDeviceGetPowerManagementLimit, handle)),
    )


def _describe(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    application_mhz, ceiling_mhz, limit_mw = _settings(nvml, handle)
    clock_mhz = _ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)
    capability = _ask(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    persistence = _ask(nvml, nvml.nvmlDeviceGetPersistenceMode, handle)
    mig = _ask(nvml, nvml.nvmlDeviceGetMigMode, handle)
    ecc = _ask(nvml, nvml.nvmlDeviceGetEccMode, handle)
    return {
        "model": _text(_ask(nvml, nvml.nvmlDeviceGetName, handle)),
        "uuid": _text(_ask(nvml, nvml.nvmlDeviceGetUUID, handle)),
        "compute_capability": None if capability is None else ".".join(map(str, capability)),
        "memory_bytes": None if memory is None else int(memory.total),
        "memory_used_bytes": None if memory is None else int(memory.used),
        "power_limit_w": None if limit_mw is None else limit_mw / 1e3,
        "sm_clock_hz": None if clock_mhz is None else clock_mhz * 1e6,
        "sm_clock_application_hz": None if application_mhz is None else application_mhz * 1e6,
        "sm_clock_max_hz": None if ceiling_mhz is None else ceiling_mhz * 1e6,
        "persistence": None if persistence is None else bool(persistence),
        "mig": None if mig is None else bool(mig[0]),
        "ecc": None if ecc is None else bool(ecc[0]),
    }


def _ask(nvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None when this device or driver does not give it."""
    try:
        return function(*arguments)
    except nvml.NVMLError:
        return None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
