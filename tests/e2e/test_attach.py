"""`sweep` over servers that already run: from the file to the report."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
import yaml

from orchestrator.cli import main
from tests.adapters.attached.fake_server import (
    VLLM,
    FakeServer,
    self_signed,
    server_side,
    serving,
)

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
KEY = "planted-0123456789-abcdef"
PATIENCE_S = 120.0
MEASURED = (0, 4, 5)
"""Pairs were measured; on a busy machine some of them, or all, rightly do not count."""
DRAFTING = VLLM | {
    "/metrics": "vllm:spec_decode_num_drafts_total 3\n"
    "vllm:spec_decode_num_accepted_tokens_total 4\n"
}


def experiment(folder: Path, baseline: str, speculative: str, **sections: Any) -> Path:
    file = folder / "x.yaml"
    content = {
        "name": "attached",
        "attach": {"baseline": baseline, "speculative": speculative} | sections.pop("attach", {}),
        "sweep": {"speculation": [{"method": "ngram", "speculation_length": 4}], "batch_size": 2},
        "workloads": [{"name": "chat", "prompts": "bundled:chat", "output_tokens": 8}],
        "measure": {"pairs": {"min": 2, "max": 3}},
        **sections,
    }
    file.write_text(yaml.safe_dump(content))
    return file


@contextmanager
def simulated(**deployment: Any) -> Iterator[tuple[str, psutil.Process]]:
    """A simulated server as a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    module = "orchestrator.adapters.simulated.server"
    config = json.dumps({"target": "tiny"} | deployment)
    process = subprocess.Popen(
        [sys.executable, "-m", module, "--port", str(port), "--config", config],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: healthy(url))
        yield url, psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


def healthy(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url + "/health", timeout=5) as response:
        return bool(response.status == 200)
    return False


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


SPECULATING = {"speculation": {"method": "ngram", "speculation_length": 4}}


def command(file: Path) -> list[str]:
    results = str(file.parent / "results")
    return [sys.executable, "-m", "orchestrator", "sweep", str(file), "--results", results]


def sweep_here(file: Path) -> int:
    return main(["sweep", str(file), "--results", str(file.parent / "results")])


def outcomes(file: Path) -> list[dict[str, Any]]:
    """In the order of the trials."""
    folder = file.parent / "results" / "attached"
    ids = [trial["id"] for trial in json.loads((folder / "trials.json").read_text())]
    return [json.loads((folder / id / "outcome.json").read_text()) for id in ids]


def test_two_running_servers_are_compared_and_left_running(tmp_path: Path) -> None:
    with simulated() as (baseline, one), simulated(**SPECULATING) as (speculative, two):
        file = experiment(tmp_path, baseline, speculative)
        ended = subprocess.run(command(file), cwd=ROOT, capture_output=True, text=True)
        assert ended.returncode in MEASURED, ended.stderr + ended.stdout
        assert one.is_running() and two.is_running()
        assert healthy(baseline) and healthy(speculative)
    folder = tmp_path / "results" / "attached"
    for outcome in outcomes(file):
        assert outcome["pairs_measured"] >= 2
        assert outcome["failure"] in (None, "no_valid_pairs")
    for path in folder.glob("*/blocks/0*.parquet"):
        rows = pq.read_table(path).to_pylist()
        assert [row["error"] for row in rows] == [None] * len(rows)
        assert {row["output_tokens"] for row in rows} == {8}
        assert {row["tokens_from"] for row in rows} == {"usage_continuous"}
    # On a quiet machine the cell may win, and is then confirmed: one more, on the same servers.
    comparison, *_ = [
        json.loads(path.read_text())
        for path in folder.glob("*/engines.json")
        if "same_server_as" not in path.read_text()
    ]
    assert comparison["speculative"]["pids"] == [two.pid]
    assert comparison["speculative"]["start_s"] is None
    report = (folder / "report.md").read_text()
    assert "SIMULATED, not measured" in report
    assert "the A/A control asks the baseline server twice, it does not relaunch it" in report
    assert f"speculative: simulated simulated with tiny at {speculative}" in report
    assert "relaunched baseline" not in json.loads((folder / "sweep.json").read_text())["control"]

    # The servers are gone now: reporting again needs neither them nor what they said.
    again = subprocess.run(command(file), cwd=ROOT, capture_output=True, text=True)
    assert again.returncode == ended.returncode, again.stderr
    assert (folder / "report.md").read_text() == report


def test_the_key_is_sent_over_tls_and_stands_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The servers quote it in their errors; the variable's name does not sound secret; the file
    itself holds it in a comment. In Parquet it would be compressed: its texts are looked at too."""
    monkeypatch.setenv("ORCHESTRATOR_LOGIN", KEY)
    tls = server_side(self_signed(tmp_path))
    careless = {"key": KEY, "quotes_key": True, "pages": DRAFTING, "fails_every": 5}
    with serving(FakeServer(**careless), tls) as one, serving(FakeServer(**careless), tls) as two:  # type: ignore[arg-type]
        secured = {"api_key_env": "ORCHESTRATOR_LOGIN", "tls_ca_file": "server.pem"}
        file = experiment(tmp_path, one.url, two.url, attach=secured)
        file.write_text(file.read_text() + f"# was {KEY}\n")
        assert sweep_here(file) in MEASURED
    assert all(headers["Authorization"] == f"Bearer {KEY}" for _, headers, _ in one.asked)
    results = tmp_path / "results"
    written = [path for path in results.rglob("*") if path.is_file()]
    assert {"sweep.json", "mlflow.db", "report.md"} <= {path.name for path in written}
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    rows = [row for path in written if path.suffix == ".parquet" for row in read_rows(path)]
    quoted = [row["error_text"] for row in rows if row["error_text"]]
    assert quoted and all("Bearer ***masked***" in text for text in quoted)
    assert KEY not in str(rows)
    said = capfd.readouterr()
    assert KEY not in said.out + said.err


def read_rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]


def test_a_wrong_key_ends_it_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVER_KEY", "wrong-9876543210")
    with serving(FakeServer(key=KEY, quotes_key=True)) as one, serving(FakeServer()) as two:
        file = experiment(tmp_path, one.url, two.url, attach={"api_key_env": "SERVER_KEY"})
        assert sweep_here(file) == 3
    told = capfd.readouterr().err
    assert f"attach.baseline: {one.url} refused the API key: HTTP 401" in told
    assert "check the key in SERVER_KEY (attach.api_key_env)" in told
    assert "wrong-9876543210" not in told
    assert not (tmp_path / "results" / "attached" / "sweep.json").exists()


def test_a_strict_server_ends_it_with_what_to_change(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    strict: dict[str, Any] = {"refuses": ["ignore_eos", "seed"], "usage": "rejects_continuous"}
    lenient = {
        "workloads": [
            {
                "name": "chat",
                "prompts": "bundled:chat",
                "output_tokens": 8,
                "fixed_length": False,
            }
        ],
        "sampling": {"seeded": False},
    }
    with serving(FakeServer()) as one, serving(FakeServer(**strict)) as two:
        assert sweep_here(experiment(tmp_path, one.url, two.url)) == 3
        told = capfd.readouterr().err
        assert "set fixed_length: false in workload chat" in told
        assert "set sampling.seeded: false" in told
        asked_before = len(one.bodies())

        file = experiment(tmp_path, one.url, two.url, **lenient)
        assert sweep_here(file) in MEASURED
        options = [body.get("stream_options") for body in one.bodies()[asked_before + 2 :]]
        assert options and all(asked == {"include_usage": True} for asked in options)
    report = (tmp_path / "results" / "attached" / "report.md").read_text()
    assert "all that the speculative server gives" in report


def test_a_server_that_dies_is_an_outcome_and_the_rest_goes_on(tmp_path: Path) -> None:
    """The control asks the baseline alone; the speculative server dies in the comparison."""
    with serving(FakeServer()) as one, serving(FakeServer(dies_after=8)) as two:
        file = experiment(tmp_path, one.url, two.url)
        assert sweep_here(file) in (4, 5)
    control, comparison = outcomes(file)
    assert control["pairs_measured"] >= 2
    assert comparison["failure"] == "crashed"
    assert comparison["cause"].startswith("the speculative engine died in block")


def test_control_c_leaves_nothing_behind_and_the_same_command_goes_on(tmp_path: Path) -> None:
    slow = {"engine": {"simulated": {"target_fixed_s": 0.02}}}
    with simulated(**slow) as (baseline, one), simulated(**slow, **SPECULATING) as (other, two):
        file = experiment(tmp_path, baseline, other, measure={"pairs": {"min": 6, "max": 6}})
        running = subprocess.Popen(
            command(file), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        blocks = tmp_path / "results" / "attached"
        wait_for(lambda: any(blocks.glob("*/blocks/*.json")) or running.poll() is not None)
        own = psutil.Process(running.pid).children(recursive=True)
        os.kill(running.pid, signal.SIGINT)
        said, _ = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 130, said
        assert "To go on: python -m orchestrator sweep" in said
        _, left = psutil.wait_procs(own, timeout=10)
        assert left == []
        assert one.is_running() and two.is_running()

        ended = subprocess.run(command(file), cwd=ROOT, capture_output=True, text=True)
        assert ended.returncode in MEASURED, ended.stderr
    assert [outcome["pairs_measured"] for outcome in outcomes(file)] == [6, 6]
