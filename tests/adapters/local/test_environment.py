"""What is recorded of the machine, what is not, and when two machines are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.adapters.local import environment as module
from orchestrator.adapters.local.environment import environment_snapshot
from orchestrator.adapters.local.host_facts import (
    container_limits,
    native_bfloat16,
    processor,
)
from orchestrator.adapters.local.product_revision import product_revision
from orchestrator.adapters.local.storage_medium import storage
from orchestrator.store.comparable import fingerprint
from tests.adapters.local.test_secrets import SECRETS


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return environment_snapshot(
        tmp_path_factory.mktemp("results"),
        environment={"HF_TOKEN": "abc", "OMP_NUM_THREADS": "2", "HOME": "/home/someone"},
        accelerators_of=lambda: [{"model": "H200", "driver": "580.1", "uuid": "GPU-1"}],
        clock=lambda: 1700000000.0,
    )


def test_it_is_plain_json_with_every_precondition(snapshot: dict[str, Any]) -> None:
    assert json.loads(json.dumps(snapshot)) == snapshot
    assert snapshot["taken_unix_s"] == 1700000000.0
    assert snapshot["processor"]["usable_cores"] >= 1
    assert snapshot["memory"]["total_bytes"] > 2**20
    assert snapshot["accelerators"][0]["model"] == "H200"
    assert snapshot["python"]["version"].startswith("3.")
    assert snapshot["packages"]["numpy"]
    assert "never-heard-of" not in snapshot["packages"]


def test_variables_are_those_that_steer_the_run_and_masked(snapshot: dict[str, Any]) -> None:
    assert snapshot["environment"] == {"HF_TOKEN": "***masked***", "OMP_NUM_THREADS": "2"}


def test_no_device_is_an_empty_list(tmp_path: Path) -> None:
    found = environment_snapshot(tmp_path, environment={}, accelerators_of=list)
    assert found["accelerators"] == []


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    secret=SECRETS,
    variable=st.sampled_from(["HF_HUB", "VLLM_ARGS", "RAY_X", "CUDA_Y", "MLFLOW_TRACKING_URI"]),
)
def test_a_planted_secret_never_appears(
    secret: str, variable: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # The property is about masking; asking git and pip for every example only takes time.
        patch.setattr(module, "product_revision", lambda: {"describe": secret})
        patch.setattr(module, "package_versions", lambda names: {"torch": secret})
        found = environment_snapshot(
            tmp_path_factory.getbasetemp(),
            environment={variable: secret, "HF_TOKEN": secret, "PATH": secret},
            accelerators_of=lambda: [{"model": secret}],
        )
    assert json.dumps(secret)[1:-1] not in json.dumps(found)


class TestFingerprint:
    def test_passing_states_do_not_change_it(self, snapshot: dict[str, Any]) -> None:
        later = {
            **snapshot,
            "taken_unix_s": 1.0,
            "load_average": [9.0, 9.0, 9.0],
            "memory": {"total_bytes": 1, "available_bytes": 1},
            "environment": {},
            "product": {"revision": "other"},
            "processor": {**snapshot["processor"], "clock_hz": 1.0},
            "accelerators": [{**snapshot["accelerators"][0], "sm_clock_hz": 5, "uuid": "GPU-2"}],
        }
        assert fingerprint(later) == fingerprint(snapshot)

    @pytest.mark.parametrize(
        ("part", "change"),
        [
            ("processor", {"model": "another"}),
            ("processor", {"usable_cores": 9999}),
            ("container", {"cpu_cores": 0.5}),
            ("packages", {"torch": "0.0.1"}),
            ("packages", {"vllm": "0.0.1"}),
        ],
    )
    def test_what_makes_results_incomparable_does(
        self, snapshot: dict[str, Any], part: str, change: dict[str, Any]
    ) -> None:
        other = {**snapshot, part: {**snapshot[part], **change}}
        assert fingerprint(other) != fingerprint(snapshot)

    def test_devices_and_protocol_do(self, snapshot: dict[str, Any]) -> None:
        device = snapshot["accelerators"][0]
        for accelerators in ([], [device, device], [{**device, "driver": "570"}]):
            assert fingerprint({**snapshot, "accelerators": accelerators}) != fingerprint(snapshot)
        assert fingerprint({**snapshot, "protocol": 999}) != fingerprint(snapshot)


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class TestReadingTheKernel:
    def test_processor(self, tmp_path: Path) -> None:
        put(
            tmp_path,
            {
                "proc/cpuinfo": "model name\t: Some CPU @ 2.0GHz\ncpu MHz\t\t: 1000.0\n"
                "flags\t\t: fpu avx2 amx_bf16\n\nmodel name\t: Some CPU @ 2.0GHz\n"
                "cpu MHz\t\t: 3000.0\n",
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
                "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3500000\n",
                "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
            },
        )
        found = processor(tmp_path)
        assert found["model"] == "Some CPU @ 2.0GHz"
        assert found["instruction_sets"] == ["amx_bf16", "avx2"]
        assert found["governor"] == "performance/powersave"
        assert found["clock_hz"] == 2e9
        assert found["clock_max_hz"] == 3.5e9
        assert found["turbo"] is False

    def test_what_the_kernel_does_not_say_is_none(self, tmp_path: Path) -> None:
        found = processor(tmp_path)
        assert (found["governor"], found["clock_hz"], found["turbo"]) == (None, None, None)
        limits = container_limits(tmp_path)
        assert limits == {"cpu_cores": None, "memory_bytes": None, "inside_container": False}

    def test_arm_has_no_model_name(self, tmp_path: Path) -> None:
        put(tmp_path, {"proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"})
        assert processor(tmp_path)["model"] == "implementer 0x41 part 0xd40"

    def test_the_tightest_limit_above_this_process_counts(self, tmp_path: Path) -> None:
        put(
            tmp_path,
            {
                "proc/self/cgroup": "0::/kubepods/pod1/c1\n",
                "sys/fs/cgroup/kubepods/pod1/c1/cpu.max": "max 100000\n",
                "sys/fs/cgroup/kubepods/pod1/c1/memory.max": "8000\n",
                "sys/fs/cgroup/kubepods/pod1/cpu.max": "150000 100000\n",
                "sys/fs/cgroup/kubepods/memory.max": "4000\n",
            },
        )
        assert container_limits(tmp_path) == {
            "cpu_cores": 1.5,
            "memory_bytes": 4000,
            "inside_container": True,
        }

    def test_control_groups_of_version_1(self, tmp_path: Path) -> None:
        put(
            tmp_path,
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            },
        )
        found = container_limits(tmp_path)
        assert (found["cpu_cores"], found["memory_bytes"]) == (2.0, None)

    @pytest.mark.parametrize(
        ("kind", "rotational", "medium"),
        [
            ("ext4", "0", "solid_state"),
            ("ext4", "1", "rotational"),
            ("ext4", None, None),
            ("tmpfs", None, "memory"),
            ("nfs4", None, "network"),
        ],
    )
    def test_storage(
        self, tmp_path: Path, kind: str, rotational: str | None, medium: str | None
    ) -> None:
        device = tmp_path.stat().st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        root = tmp_path / "root"
        put(
            root,
            {
                "proc/self/mountinfo": "21 1 99:99 / / rw - xfs /dev/x rw\n"
                f"22 21 {number} / /data rw,noatime shared:1 - {kind} /dev/sda1 rw\n"
            },
        )
        if rotational is not None:
            # A partition: its folder lies inside the disk's, which alone has a queue.
            put(root, {"sys/devices/sda/queue/rotational": rotational})
            put(root, {"sys/devices/sda/sda1/partition": "1"})
            (root / "sys/dev/block").mkdir(parents=True)
            (root / "sys/dev/block" / number).symlink_to(root / "sys/devices/sda/sda1")
        found = storage(tmp_path / "not" / "there" / "yet", root)
        assert found["file_system"] == kind
        assert found["medium"] == medium
        assert found["device"] == ("sda" if rotational is not None else None)


class TestProductRevision:
    def git(self, folder: Path, *arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e@example", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
        )

    def test_commit_and_whether_it_was_modified(self, tmp_path: Path) -> None:
        put(tmp_path, {"product/a.py": "1"})
        self.git(tmp_path, "init")
        self.git(tmp_path, "add", ".")
        self.git(tmp_path, "commit", "-m", "m")
        clean = product_revision(tmp_path / "product")
        assert len(clean["revision"]) == 40
        assert clean["modified"] is False
        put(tmp_path, {"product/a.py": "2"})
        changed = product_revision(tmp_path / "product")
        assert changed["modified"] is True
        assert changed["describe"].endswith("-dirty")

    def test_without_git_or_inside_anothers_checkout_it_is_unknown(self, tmp_path: Path) -> None:
        put(tmp_path, {"product/a.py": "1"})
        assert product_revision(tmp_path / "product")["revision"] is None
        put(tmp_path, {"theirs/venv/lib/product/a.py": "1"})
        self.git(tmp_path / "theirs", "init")
        found = product_revision(tmp_path / "theirs" / "venv" / "lib" / "product")
        assert (found["revision"], found["modified"]) == (None, None)


def test_versions_are_learnt_without_importing_the_packages() -> None:
    code = (
        "import sys, pathlib\n"
        "from orchestrator.adapters.local.environment import environment_snapshot\n"
        "environment_snapshot(pathlib.Path('.'))\n"
        "heavy = {'ray', 'vllm', 'torch', 'transformers', 'mlflow', 'pandas', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_native_bfloat16_is_read_off_the_processor(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    cpuinfo = tmp_path / "proc" / "cpuinfo"
    cpuinfo.write_text("model name\t: Some\nflags\t\t: fpu avx2 avx512f avx512_bf16\n")
    assert native_bfloat16(tmp_path) == ("avx512_bf16",)
    cpuinfo.write_text("model name\t: Other\nflags\t\t: fpu avx2\n")
    assert native_bfloat16(tmp_path) == ()
