"""Real engines behind Ray Serve, seen as a client and as an operator sees them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.adapters import processes
from orchestrator.adapters.http.asker import HttpAsker
from orchestrator.errors import DeploymentError
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Endpoint
from orchestrator.records import FailureClass
from orchestrator.run.suites.openai import completion
from tests.e2e.conftest import BASELINE, ENGINE, MODEL, NGRAM, START_TIMEOUT_S, Arms

pytestmark = [pytest.mark.engine, pytest.mark.ray, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
QUESTION: Any = [{"role": "user", "content": "Repeat twice: one two three four five six seven."}]


def streamed(endpoint: Endpoint) -> tuple[str, int]:
    """The answer of an unmodified client, and its number of output tokens."""
    import openai

    client = openai.OpenAI(base_url=f"{endpoint.base_url}/v1", api_key="none", timeout=300)
    stream = client.chat.completions.create(
        model=endpoint.model,
        messages=QUESTION,
        max_tokens=24,
        temperature=0.0,
        stream=True,
        stream_options={"include_usage": True},
    )
    text, tokens = "", 0
    for chunk in stream:
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
        if chunk.usage is not None:
            tokens = chunk.usage.completion_tokens
    return text, tokens


def test_an_unmodified_client_streams_the_same_answer_from_both_arms(arms: Arms) -> None:
    answers = [streamed(endpoint) for endpoint in arms.both()]

    assert arms.baseline.model == arms.speculative.model == MODEL
    assert 0 < answers[0][1] <= 24
    assert answers[0] == answers[1], "greedy output must not change with speculation"


def test_curl_gets_a_streamed_completion(arms: Arms) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    for endpoint in arms.both():
        body = {"model": endpoint.model, "prompt": "One, two,", "max_tokens": 4, "stream": True}
        command = ["curl", "-sN", f"{endpoint.base_url}/v1/completions"]
        command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]

        ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)

        events = [line for line in ended.stdout.splitlines() if line.startswith("data: ")]
        assert len(events) >= 2
        assert events[-1] == "data: [DONE]"


def test_engines_say_what_they_are(arms: Arms) -> None:
    facts = {name: arms.deployer.facts(name) for name in ("baseline", "speculative")}

    assert facts["baseline"].deployment_key == BASELINE.key
    assert facts["speculative"].deployment_key == NGRAM.key
    for one in facts.values():
        assert one.engine == "vllm"
        assert one.kv_capacity_tokens is not None
        assert one.kv_capacity_tokens >= 1024
        assert one.model_bytes == pytest.approx(269e6, rel=0.01)
        assert one.start_s is not None
        assert len(one.pids) >= 2
        assert all(psutil.pid_exists(pid) for pid in one.pids)
    assert not set(facts["baseline"].pids) & set(facts["speculative"].pids)


def test_counters_of_speculation_are_served_by_the_arm_that_speculates(arms: Arms) -> None:
    def counters(endpoint: Endpoint) -> str:
        with urllib.request.urlopen(f"{endpoint.base_url}/metrics", timeout=60) as answer:
            return str(answer.read().decode())

    assert "vllm:spec_decode_num_drafts_total" in counters(arms.speculative)
    assert "vllm:spec_decode_num_drafts_total" not in counters(arms.baseline)


def test_a_wrong_engine_argument_fails_with_its_class_and_cause(arms: Arms) -> None:
    wrong = Deployment(MODEL, {**ENGINE, "max_modal_len": 5})

    with pytest.raises(DeploymentError) as raised:
        arms.deployer.start(wrong, name="wrong", timeout_s=START_TIMEOUT_S)

    error = raised.value
    assert error.failure == FailureClass.BAD_CONFIGURATION
    assert "engine.max_modal_len" in error.cause
    assert "did you mean 'max_model_len'" in error.cause
    assert "\n" not in error.cause
    assert error.log_path is not None
    assert Path(error.log_path).read_text().count("max_modal_len") >= 1
    assert arms.deployer.healthy("baseline")


def test_a_wrong_value_fails_with_what_the_engine_says(arms: Arms) -> None:
    wrong = Deployment(MODEL, {**ENGINE, "max_model_len": 99_999})

    with pytest.raises(DeploymentError) as raised:
        arms.deployer.start(wrong, name="toolong", timeout_s=START_TIMEOUT_S)

    assert raised.value.failure == FailureClass.BAD_CONFIGURATION
    assert "99999" in raised.value.cause


def test_stop_leaves_no_process(arms: Arms) -> None:
    again = Deployment(MODEL, ENGINE, replica_of=BASELINE.key)
    endpoint = arms.deployer.start(again, name="again", timeout_s=START_TIMEOUT_S)
    assert streamed(endpoint)[1] > 0
    assert arms.deployer.healthy("again")
    running = processes.identify(endpoint.pids)
    assert len(running) >= len(endpoint.pids)

    arms.deployer.stop("again")

    assert [process.pid for process in processes.alive(running)] == []
    assert not arms.deployer.healthy("again")
    assert arms.deployer.healthy("baseline")
    arms.deployer.stop("again")  # an unknown name: nothing


def test_a_killed_engine_is_not_healthy(arms: Arms) -> None:
    name = "victim"
    endpoint = arms.deployer.start(
        Deployment(MODEL, ENGINE, replica_of="victim"), name=name, timeout_s=START_TIMEOUT_S
    )
    os.kill(endpoint.pids[1], signal.SIGKILL)
    asked = completion(endpoint.model, "The sky is", max_tokens=4)
    (answer,) = HttpAsker().ask(endpoint, [asked])
    assert answer.status == 500 and "EngineCore" in answer.body, "the client is told why"

    until = time.monotonic() + 60
    while arms.deployer.healthy(name) and time.monotonic() < until:
        time.sleep(0.5)

    assert not arms.deployer.healthy(name)
    arms.deployer.stop(name)


FOREGROUND = """
import sys
from pathlib import Path
from orchestrator.adapters.serve_foreground import serve_foreground
say = lambda text: print(text, flush=True)
sys.exit(serve_foreground(Path(sys.argv[1]), port=0, on_message=say))
"""


def test_serving_a_file_until_ctrl_c_leaves_nothing(model_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", FOREGROUND, str(ROOT / "serve_configs" / "side_by_side.yaml")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    family: set[int] = set()
    lines: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("ready"):
                break
        family = {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
        curls = [line.split("curl -N ")[1].split()[0] for line in lines if "curl -N" in line]
        assert [url.rsplit("/v1/", 1)[0].rsplit("/", 1)[1] for url in curls] == [
            "baseline",
            "speculative",
        ]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
        assert "no process is left" in rest
        assert process.returncode == 0
        until = time.monotonic() + 15
        while any(map(psutil.pid_exists, family)) and time.monotonic() < until:
            time.sleep(0.2)
        assert [pid for pid in family if psutil.pid_exists(pid)] == []
    finally:
        process.kill()
        process.wait()
