"""The shell scripts, run with stand-ins for Slurm and Ray."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cluster.files import CLUSTER

SWEEP_JOB = CLUSTER / "docker/sweep-job.sh"
SBATCH = CLUSTER / "slurm/sweep.sbatch"
SCRIPTS = [SWEEP_JOB, SBATCH, CLUSTER / "ray/environment.sh"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_bash_reads_it(script: Path) -> None:
    checked = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert checked.stderr == ""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed; apt-get install shellcheck")
    checked = subprocess.run(
        [shellcheck, "--exclude=SC1091", script], capture_output=True, text=True, check=False
    )
    assert checked.stdout == ""


@pytest.mark.parametrize(
    ("sweep", "job"),
    [(0, 0), (4, 0), (5, 0), (1, 1), (2, 2), (3, 3), (70, 70), (130, 130)],
)
def test_a_sweep_that_ended_is_a_job_that_succeeded(sweep: int, job: int) -> None:
    ran = subprocess.run(
        [SWEEP_JOB, "bash", "-c", f"exit {sweep}"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == job
    assert (f"(status {sweep})" in ran.stdout) is (sweep in (4, 5))


def test_a_job_without_a_command_says_so() -> None:
    ran = subprocess.run([SWEEP_JOB], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "needs a command" in ran.stderr


def test_who_stops_the_job_stops_the_sweep_and_waits_for_it(tmp_path: Path) -> None:
    """The sweep gets SIGTERM, and its own exit status is the job's."""
    ready, ended = tmp_path / "ready", tmp_path / "ended"
    sweep = f"trap 'touch {ended}; exit 130' TERM; touch {ready}; while :; do sleep 0.1; done"
    job = subprocess.Popen([SWEEP_JOB, "bash", "-c", sweep])
    try:
        subprocess.run(
            ["bash", "-c", f"until [ -e {ready} ]; do sleep 0.05; done"], check=True, timeout=30
        )
        job.terminate()
        assert job.wait(timeout=30) == 130
    finally:
        job.kill()
    assert ended.exists()


class Slurm:
    """An allocation of two nodes: srun runs what it is given once, as the head does."""

    def __init__(self, folder: Path) -> None:
        self.home, self.bin, self.calls = folder / "home", folder / "bin", folder / "calls"
        (self.home / "cluster/ray").mkdir(parents=True)
        (self.home / "cluster/ray/environment.sh").write_text(
            (CLUSTER / "ray/environment.sh").read_text(encoding="utf-8"), encoding="utf-8"
        )
        self.bin.mkdir()
        # environment.sh puts .venv/bin first: the stand-ins are there.
        (self.home / ".venv").mkdir()
        (self.home / ".venv/bin").symlink_to(self.bin)
        (self.home / "x.yaml").write_text("name: x\n", encoding="utf-8")
        self.stand_in("scontrol", 'if [ "$1" = show ]; then echo gpu-1; echo gpu-2; fi')
        self.stand_in("hostname", 'echo "10.0.0.7 192.168.0.7"')
        self.stand_in("srun", 'while [[ "$1" == --* ]]; do shift; done; exec "$@"')
        self.ray_starts()
        self.sweep_ends(0)

    def stand_in(self, name: str, body: str) -> None:
        file = self.bin / name
        file.write_text(
            f'#!/usr/bin/env bash\necho "{name} $*" >> {self.calls}\n{body}\n', encoding="utf-8"
        )
        file.chmod(0o755)

    def ray_starts(self) -> None:
        run = 'while [ "$1" != -- ]; do shift; done; shift; "$@"'
        self.stand_in("ray", f'if [ "$1" = symmetric-run ]; then {run}; fi')

    def ray_does_not_start(self) -> None:
        """As the real one: it says so, and ends with 0."""
        self.stand_in("ray", "echo 'Failed to start Ray' >&2; exit 0")

    def sweep_ends(self, status: int) -> None:
        self.stand_in("python", f"exit {status}")

    def submit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            # exec keeps the process id, which stands in for what Slurm sends signals to.
            ["bash", "-c", 'BATCH_PID=$$ exec bash "$@"', "sbatch", SBATCH, *arguments],
            cwd=self.home,
            env={
                "PATH": f"{self.bin}:/usr/bin:/bin",
                "HOME": str(self.home),
                "SLURM_JOB_ID": "4242",
                "SLURM_JOB_NUM_NODES": "2",
                "SLURM_JOB_NODELIST": "gpu-[1-2]",
                "SLURM_SUBMIT_DIR": str(self.home),
                "SLURM_CPUS_PER_TASK": "16",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def called(self, program: str) -> list[str]:
        lines = self.calls.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.split()[0] == program]


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    return Slurm(tmp_path)


def test_ray_runs_on_all_nodes_and_the_sweep_on_the_head(slurm: Slurm) -> None:
    done = slurm.submit("x.yaml", "--retry-failed")
    assert done.returncode == 0, done.stderr
    (run,) = (call for call in slurm.called("ray") if "symmetric-run" in call)
    # port: 20000 + 4242
    assert "symmetric-run --address 10.0.0.7:24242 --min-nodes 2 -- " in run
    assert slurm.called("python") == [
        f"python -m orchestrator sweep {slurm.home}/x.yaml --results {slurm.home}/results "
        "--address 10.0.0.7:24242 --retry-failed"
    ]
    assert any("--nodes=2 --ntasks-per-node=1" in call for call in slurm.called("srun"))
    assert "ray get-auth-token --generate" in slurm.called("ray")


@pytest.mark.parametrize("status", [0, 2, 4, 70])
def test_the_exit_status_is_the_sweeps(slurm: Slurm, status: int) -> None:
    slurm.sweep_ends(status)
    assert slurm.submit("x.yaml").returncode == status
    assert list((slurm.home / "results").iterdir()) == []  # nothing of the script's own stays


def test_a_ray_that_does_not_start_is_not_a_success(slurm: Slurm) -> None:
    slurm.ray_does_not_start()
    done = slurm.submit("x.yaml")
    assert done.returncode == 1
    assert "the sweep never started" in done.stderr


def test_before_its_time_is_up_the_job_requeues_itself(slurm: Slurm) -> None:
    # What --signal=B:USR1@180 does: the batch shell gets USR1 while the sweep runs.
    slurm.stand_in("python", 'kill -USR1 "$BATCH_PID"; sleep 1; exit 0')
    done = slurm.submit("x.yaml")
    assert done.returncode == 0, done.stderr
    assert "scontrol requeue 4242" in slurm.called("scontrol")
    assert "requeueing" in done.stdout


def test_without_an_experiment_it_says_how_to_call_it(slurm: Slurm) -> None:
    done = slurm.submit()
    assert done.returncode != 0
    assert "which experiment?" in done.stderr
