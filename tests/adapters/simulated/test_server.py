"""The HTTP face: what an OpenAI client and a Prometheus scraper see. No timing is asserted."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from orchestrator.adapters.http.prometheus import read_page
from orchestrator.adapters.simulated.server import SimulatedServer, main, read_deployment
from tests.adapters.simulated.build import configuration

Session = aiohttp.ClientSession
QUICK = {"target_fixed_s": 0.0005, "draft_fixed_s": 0.0}


def against(server: SimulatedServer, check: Callable[[Session, str], Awaitable[None]]) -> None:
    """Serves on a free loopback port and runs the check against it."""

    async def session() -> None:
        runner = web.AppRunner(server.app(), handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        try:
            async with aiohttp.ClientSession() as client:
                await asyncio.wait_for(check(client, f"http://{host}:{port}"), 30)
        finally:
            await runner.cleanup()

    asyncio.run(session())


def simulated(length: int = 0, **how: Any) -> SimulatedServer:
    return SimulatedServer(configuration(length, **{**QUICK, **how}), on_crash=lambda: None)


async def events(response: aiohttp.ClientResponse) -> list[Any]:
    """The payloads of an event stream; checks that it ends as OpenAI's does."""
    text = (await response.read()).decode()
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def asked(**more: Any) -> dict[str, Any]:
    return {
        "model": "tiny",
        "prompt": "tell me",
        "max_tokens": 9,
        "temperature": 0,
        "ignore_eos": True,
        **more,
    }


def test_a_streamed_completion_counts_its_tokens_chunk_by_chunk() -> None:
    async def check(client: Session, url: str) -> None:
        options = {"include_usage": True, "continuous_usage_stats": True}
        body = asked(stream=True, stream_options=options, return_token_ids=True)
        async with client.post(f"{url}/v1/completions", json=body) as response:
            assert response.status == 200
            assert response.headers["x-simulated"] == "true"
            assert response.content_type == "text/event-stream"
            *chunks, last = await events(response)
        counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
        assert counts == [1, 5, 9], "one token from the prompt, then 4 a step"
        assert [len(c["choices"][0]["token_ids"]) for c in chunks] == [1, 4, 4]
        assert [c["choices"][0]["finish_reason"] for c in chunks] == [None, None, "length"]
        assert len("".join(c["choices"][0]["text"] for c in chunks).split()) == 9
        assert last["choices"] == [] and last["usage"]["total_tokens"] == 2 + 9

    against(simulated(3, acceptance=1.0), check)


def test_a_streamed_chat_begins_with_the_role_and_needs_no_usage() -> None:
    async def check(client: Session, url: str) -> None:
        body = {
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "max_completion_tokens": 3,
            "ignore_eos": True,
            "stream": True,
        }
        async with client.post(f"{url}/v1/chat/completions", json=body) as response:
            chunks = await events(response)
        assert [c["object"] for c in chunks] == ["chat.completion.chunk"] * 3
        assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
        assert "role" not in chunks[1]["choices"][0]["delta"]
        assert all("usage" not in c for c in chunks)

    against(simulated(), check)


def test_streamed_and_whole_answers_are_the_same_and_agree_with_the_baseline() -> None:
    texts: list[str] = []

    async def check(client: Session, url: str) -> None:
        async with client.post(f"{url}/v1/completions", json=asked()) as response:
            whole = await response.json()
        assert whole["usage"] == {"prompt_tokens": 2, "total_tokens": 11, "completion_tokens": 9}
        async with client.post(f"{url}/v1/completions", json=asked(stream=True)) as response:
            streamed = "".join(c["choices"][0]["text"] for c in await events(response))
        texts.extend((whole["choices"][0]["text"], streamed))
        chat = {"messages": [{"role": "user", "content": "tell me"}], **asked()}
        async with client.post(f"{url}/v1/chat/completions", json=chat) as response:
            texts.append((await response.json())["choices"][0]["message"]["content"])

    against(simulated(), check)
    against(simulated(2, acceptance=0.5), check)
    assert len(texts) == 6 and len(set(texts)) == 1


def test_models_health_version_and_tokenize() -> None:
    async def check(client: Session, url: str) -> None:
        async with client.get(f"{url}/v1/models") as response:
            (model,) = (await response.json())["data"]
            assert response.headers["x-simulated"] == "true"
        assert (model["id"], model["owned_by"]) == ("tiny", "simulated")
        async with client.get(f"{url}/health") as response:
            assert response.status == 200
        async with client.get(f"{url}/version") as response:
            assert await response.json() == {"version": "simulated"}
        async with client.post(f"{url}/tokenize", json={"prompt": "12345678"}) as response:
            assert (await response.json())["count"] == 2
        headers = {"Content-Type": "application/json"}
        async with client.post(f"{url}/tokenize", data=b"{", headers=headers) as response:
            assert response.status == 400
        async with client.post(f"{url}/tokenize", data=b"{}") as response:
            assert response.status == 415

    against(simulated(), check)


def test_metrics_have_vllms_names_and_agree_with_usage() -> None:
    async def check(client: Session, url: str) -> None:
        for _ in range(2):
            async with client.post(f"{url}/v1/completions", json=asked()) as response:
                await response.read()
        async with client.get(f"{url}/metrics") as response:
            text = await response.text()
        values = {
            line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if not line.startswith("#")
        }
        labels = 'engine="0",model_name="tiny"'
        assert values[f"vllm:generation_tokens_total{{{labels}}}"] == 18
        assert values[f"vllm:prompt_tokens_total{{{labels}}}"] == 4
        assert values[f"vllm:spec_decode_num_drafts_total{{{labels}}}"] == 4
        assert values[f"vllm:spec_decode_num_draft_tokens_total{{{labels}}}"] == 12
        assert values[f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}}"] == 12
        read = read_page(text, at_unix_s=0.0)
        assert read is not None and read.accepted_per_position == (4.0, 4.0, 4.0)
        assert (read.generation_tokens, read.requests_finished) == (18.0, 2.0)
        position = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        assert values[f'{position}{{{labels},position="2"}}'] == 4

    against(simulated(3, acceptance=1.0), check)


def test_a_baseline_exposes_no_speculation_counters() -> None:
    async def check(client: Session, url: str) -> None:
        async with client.get(f"{url}/metrics") as response:
            assert "spec_decode" not in await response.text()

    against(simulated(), check)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (asked(model="other"), 404, "model"),
        (asked(n=0), 400, "n"),
        (asked(max_tokens=0), 400, None),
        (asked(max_tokens="many"), 400, "max_tokens"),
        (asked(temperature=-1), 400, "temperature"),
        (asked(seed="x"), 400, "seed"),
        (asked(prompt=[]), 400, "prompt"),
        (asked(stream_options=3), 400, "stream_options"),
        (asked(max_tokens=600), 400, None),
        ([], 400, None),
    ],
)
def test_malformed_requests_get_openais_error_body(body: Any, status: int, param: str) -> None:
    async def check(client: Session, url: str) -> None:
        async with client.post(f"{url}/v1/completions", json=body) as response:
            assert response.status == status
            error = (await response.json())["error"]
        assert error["code"] == status and error["message"]
        if param is not None:
            assert error["param"] == param

    against(simulated(engine={"max_model_len": 512}), check)


def test_chat_without_messages_is_refused() -> None:
    async def check(client: Session, url: str) -> None:
        for body in ({}, {"messages": []}, {"messages": [{"role": "user"}]}):
            async with client.post(f"{url}/v1/chat/completions", json=body) as response:
                assert response.status == 400

    against(simulated(), check)


def test_planted_errors_come_as_a_status_and_in_mid_stream() -> None:
    async def check(client: Session, url: str) -> None:
        async with client.post(f"{url}/v1/completions", json=asked()) as response:
            assert response.status == 500
        async with client.post(f"{url}/v1/completions", json=asked(stream=True)) as response:
            *chunks, error = await events(response)
        assert len(chunks) == 1 and "planted" in error["error"]["message"]

    faults = {"error_on_request": 1, "error_mid_stream_on_request": 2}
    against(simulated(faults=faults), check)


def test_a_client_that_goes_away_frees_its_slot() -> None:
    server = simulated(engine={"max_num_seqs": 1})

    async def check(client: Session, url: str) -> None:
        long = asked(max_tokens=100_000, stream=True)
        async with client.post(f"{url}/v1/completions", json=long) as response:
            await response.content.readline()
            response.close()
        async with client.post(f"{url}/v1/completions", json=asked()) as response:
            assert response.status == 200, "it would wait for minutes behind the first"
        assert server.live.engine.scheduler.running == 0

    against(server, check)


def test_64_streams_at_once_all_end_whole() -> None:
    server = simulated(target_fixed_s=0.005)

    async def check(client: Session, url: str) -> None:
        async def one(index: int) -> int:
            body = asked(prompt=f"prompt {index}", max_tokens=20, stream=True)
            async with client.post(f"{url}/v1/completions", json=body) as response:
                return len(await events(response))

        assert await asyncio.gather(*[one(i) for i in range(64)]) == [20] * 64

    against(server, check)
    assert server.live.engine.counters.generation_tokens == 64 * 20


def test_a_hung_engine_answers_neither_requests_nor_health() -> None:
    async def check(client: Session, url: str) -> None:
        for ask in (
            client.post(f"{url}/v1/completions", json=asked()),
            client.get(f"{url}/health"),
        ):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await ask

    against(simulated(faults={"hang_from_s": 0.0}), check)


def test_a_configuration_is_read_from_text_or_file(tmp_path: Path) -> None:
    text = json.dumps({"target": "m", "speculation": {"method": "eagle", "speculation_length": 2}})
    path = tmp_path / "deployment.json"
    path.write_text(text, encoding="utf-8")
    assert read_deployment(text) == read_deployment(str(path))
    assert read_deployment("{}").speculation is None


def test_start_failures_are_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    oom = '{"engine": {"simulated": {"faults": {"start_failure": "out_of_memory"}}}}'
    assert main(["--port", "1", "--config", oom]) == 1
    assert "out_of_memory" in capsys.readouterr().err
    assert main(["--port", "1", "--config", '{"engine": {"simulated": {"x": 1}}}']) == 2
    assert "unknown key" in capsys.readouterr().err


@pytest.mark.slow
def test_as_a_process_it_serves_and_dies_of_a_planted_crash() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = json.dumps(
        {
            "target": "tiny",
            "engine": {"simulated": {"faults": {"crash_at_s": 2.0}, "target_fixed_s": 0.01}},
        }
    )
    command = [sys.executable, "-m", "orchestrator.adapters.simulated.server"]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--config", config],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )

    async def until_reset() -> None:
        async with aiohttp.ClientSession() as client:
            url = f"http://127.0.0.1:{port}/v1/completions"
            deadline = time.monotonic() + 30
            while True:
                try:
                    async with client.post(url, json=asked(max_tokens=50_000)) as response:
                        await response.read()
                except aiohttp.ClientConnectorError:
                    assert time.monotonic() < deadline, "the server did not come up"
                    await asyncio.sleep(0.05)
                except aiohttp.ClientError:
                    return

    try:
        asyncio.run(until_reset())
        _, log = process.communicate(timeout=10)
    finally:
        process.kill()
    assert process.returncode == 1
    assert b"planted crash" in log
