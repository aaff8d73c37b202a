"""MLflow on PostgreSQL, as `cluster/mlflow` runs it, while several sweeps log at once."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.sweep.world import write_experiment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SWEEPS = ("one", "two", "three")
LIMIT_S = 120.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_server(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    pytest.fail(f"{url} does not answer; its log ends:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A PostgreSQL of our own: its data in a folder that goes, its port free, on loopback."""
    pytest.importorskip("psycopg2", reason="NOT TESTED: PostgreSQL; needs the extra `postgres`")
    initdb, server = shutil.which("initdb"), shutil.which("postgres")
    if initdb is None or server is None:
        pytest.skip("NOT TESTED: PostgreSQL; initdb and postgres are not on the PATH")
    # PostgreSQL refuses to be root.
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    by = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid}
    with tempfile.TemporaryDirectory(prefix="orchestrator-postgres-") as name:
        folder = Path(name)
        if owner is not None:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        options = ["--username=mlflow", "--auth=trust", "--no-sync", "--encoding=UTF8"]
        subprocess.run(
            [initdb, "--pgdata", str(folder / "data"), *options],
            check=True,
            capture_output=True,
            cwd=folder,
            **by,  # type: ignore[call-overload]
        )
        port = free_port()
        process = subprocess.Popen(
            [
                server,
                "-D",
                str(folder / "data"),
                "-p",
                str(port),
                "-h",
                "127.0.0.1",
                "-k",
                str(folder),
                "-c",
                "fsync=off",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            **by,
        )
        try:
            yield _database(port)
        finally:
            process.terminate()
            process.wait(30)


def _database(port: int) -> str:
    import psycopg2

    until = time.monotonic() + LIMIT_S
    where = {"host": "127.0.0.1", "port": port, "user": "mlflow"}
    while True:
        try:
            connection = psycopg2.connect(dbname="postgres", **where)
            break
        except psycopg2.OperationalError:
            assert time.monotonic() < until, "PostgreSQL does not answer"
            time.sleep(0.1)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE mlflow")
    connection.close()
    return f"postgresql+psycopg2://mlflow@127.0.0.1:{port}/mlflow"


@pytest.fixture(scope="module")
def mlflow_url(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    port, log = free_port(), folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "mlflow",
                "server",
                "--workers",
                "1",
                "--backend-store-uri",
                postgres,
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--artifacts-destination",
                str(folder / "artifacts"),
            ],
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for_server(f"{url}/health", process, log)
        yield url
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        process.wait(30)


def test_sweeps_that_log_at_once_lose_no_run_and_share_nothing(
    mlflow_url: str, tmp_path: Path
) -> None:
    def start(name: str) -> subprocess.Popen[str]:
        file = write_experiment(tmp_path, name=name, lengths="[2]")
        command = [sys.executable, "-m", "orchestrator", "sweep", str(file)]
        return subprocess.Popen(
            [*command, "--results", str(tmp_path / "r"), "--tracking-uri", mlflow_url],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    running = {name: start(name) for name in SWEEPS}
    for name, process in running.items():
        said, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, said
        assert mlflow_url in said, (name, said)

    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=mlflow_url)
    for name in SWEEPS:
        experiment = client.get_experiment_by_name(name)
        assert experiment is not None
        runs = client.search_runs([experiment.experiment_id])
        kinds = sorted(run.data.tags["kind"] for run in runs)
        assert kinds == ["aa_control", "comparison", "comparison", "confirmation", "sweep"]
        assert {run.info.status for run in runs} == {"FINISHED"}
        (parent,) = (run.info.run_id for run in runs if run.data.tags["kind"] == "sweep")
        for run in runs:
            if run.info.run_id != parent:
                assert run.data.tags["mlflow.parentRunId"] == parent
                assert run.data.metrics["speedup_throughput"] > 0
                found = client.list_artifacts(run.info.run_id, "trial")
                assert "trial/outcome.json" in {item.path for item in found}
