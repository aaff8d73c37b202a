"""NVIDIA devices, told by a driver that is not there."""

from __future__ import annotations

import os
import sys
import types
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.adapters.nvml import NvmlTelemetry, accelerators, nvml_or_none
from orchestrator.ports import Endpoint
from orchestrator.store.comparable import fingerprint


class NVMLError(Exception):
    pass


class FakeNvml:
    """Two devices; `refuse` names calls the driver does not know, `set` changes an answer."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0

    def __init__(self) -> None:
        self.refuse: set[str] = set()
        self.answers: dict[str, Any] = {
            "nvmlDeviceGetCount": 2,
            "nvmlSystemGetDriverVersion": "580.65.06",
            "nvmlSystemGetCudaDriverVersion_v2": 13000,
            "nvmlDeviceGetName": b"NVIDIA H200",
            "nvmlDeviceGetUUID": "GPU-abc",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=150_000, used=4_000, free=146_000),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=37, memory=5),
            "nvmlDeviceGetPowerUsage": 412_500,
            "nvmlDeviceGetClockInfo": 1_980,
            "nvmlDeviceGetApplicationsClock": 1_980,
            "nvmlDeviceGetMaxClockInfo": 1_980,
            "nvmlDeviceGetPowerManagementLimit": 700_000,
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetCurrentClocksEventReasons": 0,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0,
            "nvmlDeviceGetComputeRunningProcesses": [],
            "nvmlDeviceGetTotalEccErrors": 0,
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetEccMode": [1, 1],
        }

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)

        def answer(*_: Any) -> Any:
            if name in self.refuse:
                raise NVMLError("Not Supported")
            return self.answers[name]

        return answer


def read(nvml: FakeNvml, telemetry: NvmlTelemetry | None = None, *pids: int) -> dict[str, float]:
    made = telemetry or NvmlTelemetry(nvml, indices=[0], tree=set)
    return made.reader(Endpoint("b", "http://127.0.0.1:1", "m", pids=pids))()


def test_values_in_si_units_with_the_devices_index() -> None:
    assert read(FakeNvml()) == {
        "gpu_utilization/0": 0.37,
        "gpu_memory_used_bytes/0": 4_000.0,
        "gpu_memory_total_bytes/0": 150_000.0,
        "gpu_power_w/0": 412.5,
        "gpu_sm_clock_hz/0": 1.98e9,
        "gpu_temperature_c/0": 61.0,
        "gpu_throttled/0": 0.0,
        "gpu_throttle_reasons/0": 0.0,
        "gpu_clock_changed/0": 0.0,
        "gpu_foreign_processes/0": 0.0,
        "gpu_ecc_uncorrected/0": 0.0,
    }


def test_all_devices_unless_some_are_named() -> None:
    nvml = FakeNvml()
    everything = read(nvml, NvmlTelemetry(nvml, tree=set))
    assert {key.partition("/")[2] for key in everything} == {"0", "1"}
    one = read(nvml, NvmlTelemetry(nvml, indices=[1], tree=set))
    assert {key.partition("/")[2] for key in one} == {"1"}


@pytest.mark.parametrize(
    ("reasons", "throttled"),
    [
        (0x0, 0.0),
        (0x1, 0.0),  # idle
        (0x2, 0.0),  # application clocks
        (0x4, 1.0),  # power cap
        (0x8, 1.0),  # hardware slowdown
        (0x20, 1.0),  # thermal
        (0x1 | 0x40, 1.0),
    ],
)
def test_throttled_is_any_reason_but_idle_and_chosen_clocks(reasons: int, throttled: float) -> None:
    nvml = FakeNvml()
    nvml.answers["nvmlDeviceGetCurrentClocksEventReasons"] = reasons
    assert read(nvml)["gpu_throttled/0"] == throttled


def test_an_old_driver_knows_only_the_old_name_of_the_reasons() -> None:
    nvml = FakeNvml()
    nvml.refuse = {"nvmlDeviceGetCurrentClocksEventReasons"}
    nvml.answers["nvmlDeviceGetCurrentClocksThrottleReasons"] = 0x8
    assert read(nvml)["gpu_throttled/0"] == 1.0


def test_what_the_driver_does_not_tell_is_left_out_never_zero() -> None:
    nvml = FakeNvml()
    nvml.refuse = {name for name in nvml.answers if name != "nvmlDeviceGetCount"}
    assert read(nvml) == {}
    nvml.refuse = {"nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetPowerUsage"}
    found = read(nvml)
    assert "gpu_ecc_uncorrected/0" not in found
    assert "gpu_power_w/0" not in found
    assert found["gpu_temperature_c/0"] == 61


def test_processes_of_engine_client_and_other_arm_are_not_foreign() -> None:
    nvml = FakeNvml()
    nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [
        SimpleNamespace(pid=pid) for pid in (11, 12, 13, os.getpid())
    ]
    telemetry = NvmlTelemetry(nvml, indices=[0], ours=lambda: [12], tree=set)
    assert read(nvml, telemetry, 11)["gpu_foreign_processes/0"] == 1.0  # 13


def test_a_changed_setting_is_told_for_the_whole_block_and_then_is_the_new_normal() -> None:
    nvml = FakeNvml()
    telemetry = NvmlTelemetry(nvml, indices=[0], tree=set)
    endpoint = Endpoint("b", "http://127.0.0.1:1", "m")

    first = telemetry.reader(endpoint)
    assert first()["gpu_clock_changed/0"] == 0.0
    nvml.answers["nvmlDeviceGetClockInfo"] = 1_500  # the clock follows the load: no change
    assert first()["gpu_clock_changed/0"] == 0.0

    nvml.answers["nvmlDeviceGetApplicationsClock"] = 1_200  # between two blocks
    second = telemetry.reader(endpoint)
    assert [second()["gpu_clock_changed/0"] for _ in range(2)] == [1.0, 1.0]
    assert telemetry.reader(endpoint)()["gpu_clock_changed/0"] == 0.0


def test_a_run_samples_and_stops() -> None:
    nvml = FakeNvml()
    run = NvmlTelemetry(nvml, indices=[0], period_s=3600, tree=set).start(
        Endpoint("b", "http://127.0.0.1:1", "m")
    )
    assert run.stop() == ()  # no time passed that is worth a reading


def test_the_description_of_a_device() -> None:
    first, second = accelerators(FakeNvml())
    assert first == {
        "index": 0,
        "model": "NVIDIA H200",
        "uuid": "GPU-abc",
        "compute_capability": "9.0",
        "memory_bytes": 150_000,
        "memory_used_bytes": 4_000,
        "power_limit_w": 700.0,
        "sm_clock_hz": 1.98e9,
        "sm_clock_application_hz": 1.98e9,
        "sm_clock_max_hz": 1.98e9,
        "persistence": True,
        "mig": False,
        "ecc": True,
        "driver": "580.65.06",
        "cuda": "13.0",
    }
    assert second["index"] == 1


def test_a_device_that_tells_nothing_is_still_counted() -> None:
    nvml = FakeNvml()
    nvml.refuse = {name for name in nvml.answers if name != "nvmlDeviceGetCount"}
    assert [device["model"] for device in accelerators(nvml)] == [None, None]


def test_without_a_driver_there_are_no_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise NVMLError("Driver Not Loaded")

    module = types.SimpleNamespace(NVMLError=NVMLError, nvmlInit=refuse)
    monkeypatch.setitem(sys.modules, "pynvml", module)  # type: ignore[arg-type]
    assert nvml_or_none() is None
    assert accelerators() == []


def test_a_fingerprint_takes_devices_as_they_are_described() -> None:
    common = {
        "protocol": 1,
        "packages": {},
        "container": {"cpu_cores": None},
        "processor": dict.fromkeys(
            ("model", "architecture", "physical_cores", "logical_cores", "usable_cores")
        ),
    }
    nvml = FakeNvml()
    before = fingerprint({**common, "accelerators": accelerators(nvml)})
    nvml.answers["nvmlDeviceGetPowerManagementLimit"] = 500_000
    assert fingerprint({**common, "accelerators": accelerators(nvml)}) != before
