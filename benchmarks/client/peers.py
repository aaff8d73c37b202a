"""The other load generators: how each is installed, started, and read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from scenario import Claim, Scenario, write_prompts

MODEL = "stub"


class PeerFailed(Exception):
    """A peer could not be installed or run; the text goes into the table."""


class Peer(Protocol):
    name: ClassVar[str]

    def ensure(self, cache: Path) -> str:
        """Installs it if it is missing; returns its version. Raises: PeerFailed."""

    def command(self, scenario: Scenario, url: str, folder: Path, tokenizer: Path) -> list[str]: ...

    def environment(self) -> dict[str, str]: ...

    def read(self, folder: Path) -> tuple[list[Claim], float]:
        """The requests that completed, and the duration the tool counted."""


@dataclass(frozen=True)
class VllmBench:
    """`vllm bench serve`, from the package that is installed here; it starts no engine."""

    name: ClassVar[str] = "vllm bench serve"

    def ensure(self, cache: Path) -> str:
        code = "import vllm; print(vllm.__version__)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.returncode:
            raise PeerFailed(_last_line(done.stderr))
        return done.stdout.split()[-1]

    def command(self, scenario: Scenario, url: str, folder: Path, tokenizer: Path) -> list[str]:
        write_prompts(folder / "prompts.jsonl", "prompt", scenario.requests)
        # Not the `vllm` command: it asks for a distribution named vllm, which the package for
        # CPUs is not.
        code = (
            "from vllm.benchmarks.serve import add_cli_args, main\n"
            "from vllm.utils.argparse_utils import FlexibleArgumentParser\n"
            "parser = FlexibleArgumentParser()\n"
            "add_cli_args(parser)\n"
            "main(parser.parse_args())\n"
        )
        load = ["--max-concurrency", str(scenario.streams)]
        if scenario.mode == "open":
            # Gamma gaps of this shape are constant.
            load = ["--request-rate", f"{scenario.rate_rps:.4f}", "--burstiness", "1000000"]
        return [
            *(sys.executable, "-c", code, "--backend", "openai-chat", "--base-url", url),
            *("--endpoint", "/v1/chat/completions", "--model", MODEL),
            *("--tokenizer", str(tokenizer), "--dataset-name", "custom"),
            *("--dataset-path", str(folder / "prompts.jsonl"), "--disable-shuffle"),
            *("--custom-output-len", str(scenario.tokens), "--ignore-eos"),
            *("--num-prompts", str(scenario.requests), *load, "--disable-tqdm"),
            *("--save-result", "--save-detailed", "--result-dir", str(folder)),
            *("--result-filename", "result.json"),
        ]

    def environment(self) -> dict[str, str]:
        return {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

    def read(self, folder: Path) -> tuple[list[Claim], float]:
        found = json.loads((folder / "result.json").read_text())
        rows = zip(
            found["ttfts"], found["latencies"], found["output_lens"], found["generated_texts"],
            found["errors"], strict=True,
        )  # fmt: skip
        claims = [
            Claim(ttft, (latency - ttft) / (tokens - 1), tokens, text)
            for ttft, latency, tokens, text, error in rows
            if not error and tokens > 1
        ]
        return claims, found["duration"]


@dataclass(frozen=True)
class Installed:
    """A peer in an environment of its own under the cache folder."""

    cache: Path
    package: ClassVar[str]

    def ensure(self, cache: Path) -> str:
        python = cache / self.package / "bin" / "python"
        if not python.exists():
            _run(["uv", "venv", "--quiet", "--python", sys.executable, str(cache / self.package)])
        _run(["uv", "pip", "install", "--quiet", "--python", str(python), self.package])
        code = f"import importlib.metadata as m; print(m.version({self.package!r}))"
        return _run([str(python), "-c", code]).strip()


@dataclass(frozen=True)
class GuideLlm(Installed):
    package: ClassVar[str] = "guidellm"
    name: ClassVar[str] = "GuideLLM"

    def command(self, scenario: Scenario, url: str, folder: Path, tokenizer: Path) -> list[str]:
        write_prompts(folder / "prompts.jsonl", "prompt", scenario.requests)
        profile = f"kind=concurrent,streams={scenario.streams}"
        if scenario.mode == "open":
            profile = f"kind=constant,rate={scenario.rate_rps:.4f}"
        backend = (
            f"kind=openai_http,target={url},model={MODEL},max_tokens={scenario.tokens},"
            "request_format=/v1/chat/completions"
        )
        return [
            *(str(self.cache / self.package / "bin" / "guidellm"), "run", "--disable-console"),
            *("--backend", backend, "--profile", profile),
            *("--constraint", f"kind=max_requests,count={scenario.requests}"),
            *("--tokenizer", f"kind=hf_auto,model={tokenizer}"),
            *("--data", f"kind=json_file,path={folder / 'prompts.jsonl'}"),
            *("--output", f"kind=json,path={folder / 'result.json'}"),
        ]

    def environment(self) -> dict[str, str]:
        # One core: more processes would only take it from each other.
        return {
            "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
            "GUIDELLM__MAX_WORKER_PROCESSES": "1",
        }  # fmt: skip

    def read(self, folder: Path) -> tuple[list[Claim], float]:
        (run,) = json.loads((folder / "result.json").read_text())["benchmarks"]
        claims, starts, ends = [], [], []
        for request in run["requests"]["successful"]:
            times = request["info"]["timings"]
            counted = request["output_metrics"]
            tokens = counted["text_tokens"] or counted["total_tokens"]
            first, last = times["first_token_iteration"], times["last_token_iteration"]
            starts.append(times["request_start"])
            ends.append(times["request_end"])
            claims.append(
                Claim(
                    first - times["request_start"],
                    (last - first) / (tokens - 1),
                    tokens,
                    request["output"],
                )
            )
        return claims, max(ends) - min(starts)


@dataclass(frozen=True)
class AiPerf(Installed):
    package: ClassVar[str] = "aiperf"
    name: ClassVar[str] = "AIPerf"

    def command(self, scenario: Scenario, url: str, folder: Path, tokenizer: Path) -> list[str]:
        write_prompts(folder / "prompts.jsonl", "text", scenario.requests)
        load = ["--concurrency", str(scenario.streams)]
        if scenario.mode == "open":
            load = ["--request-rate", f"{scenario.rate_rps:.4f}", "--arrival-pattern", "constant"]
        return [
            *(str(self.cache / self.package / "bin" / "aiperf"), "profile", "--model", MODEL),
            *("--tokenizer", str(tokenizer), "--url", url, "--endpoint-type", "chat"),
            *("--streaming", "--input-file", str(folder / "prompts.jsonl")),
            *("--custom-dataset-type", "single-turn", "--request-count", str(scenario.requests)),
            *(*load, "--use-server-token-count", "--use-legacy-max-tokens"),
            *("--extra-inputs", f"max_tokens:{scenario.tokens}", "--ui", "none"),
            *("--no-gpu-telemetry", "--export-outputs-json"),
            *("--output-artifact-dir", str(folder / "aiperf")),
        ]

    def environment(self) -> dict[str, str]:
        # Offline mode would make it look for the tokenizer in a cache instead of the folder.
        return {}

    def read(self, folder: Path) -> tuple[list[Claim], float]:
        records = json.loads((folder / "aiperf" / "outputs.json").read_text())["data"]
        claims = []
        for record in records:
            metrics: dict[str, Any] = record["metrics"]
            claims.append(
                Claim(
                    metrics["time_to_first_token"] / 1e3,
                    metrics["inter_token_latency"] / 1e3,
                    metrics["output_sequence_length"],
                    record["response_text"],
                )
            )
        start_ns = min(record["request_start_ns"] for record in records)
        end_ns = max(record["request_end_ns"] for record in records)
        return claims, (end_ns - start_ns) * 1e-9


def _run(command: list[str]) -> str:
    uv = Path(sys.executable).with_name("uv")
    if command[0] == "uv" and uv.exists():
        command = [str(uv), *command[1:]]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=900, env=dict(os.environ)
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise PeerFailed(str(fault)) from fault
    if done.returncode:
        raise PeerFailed(_last_line(done.stderr))
    return done.stdout


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2][:200] or "it wrote nothing"
