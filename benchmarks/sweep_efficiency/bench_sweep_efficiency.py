"""Wall time of one sweep: ours against `vllm bench sweep serve`, on this machine.

    python -m benchmarks.sweep_efficiency.bench_sweep_efficiency [--lengths 4] [--batch-sizes 1 4]

Same model, engine arguments, threads, cells (baseline and each K, at each batch size) and measured
requests for each cell: `--runs` runs of theirs, as many pairs of ours, each of `--requests`
requests for every request in flight, of the same length. Ours measures more besides: the baseline
once for every K (pairs), and the A/A control. Both have warm-up of one request for each in flight.
Engines that are started, and processes that import vLLM for every run, are part of the time, as
they are for whoever waits for the result. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.adapters.local.host_facts import processor
from orchestrator.models.prepare import prepare
from orchestrator.serving.environment import allowed_cpus, compute_cpus, engine_environment
from orchestrator.store import SweepFolder
from orchestrator.workloads.load import load_prompts

MODEL = "smollm2-135m-instruct"
ROOT = Path(__file__).resolve().parents[2]
CONTEXT = 512


@dataclass(frozen=True)
class Cells:
    """What both are to measure."""

    lengths: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    runs: int
    requests: int
    output_tokens: int
    dtype: str

    @property
    def engine(self) -> dict[str, Any]:
        return {
            "dtype": self.dtype,
            "max_model_len": CONTEXT,
            "max_num_seqs": max(self.batch_sizes),
            "enforce_eager": True,
            "enable_prefix_caching": False,
        }

    @property
    def count(self) -> int:
        return (1 + len(self.lengths)) * len(self.batch_sizes)


@dataclass(frozen=True)
class Took:
    wall_s: float
    requests: int
    """Inside measured runs or blocks."""
    starts: int


def theirs(cells: Cells, folder: Path) -> Took:
    """Raises: CalledProcessError with what it wrote when it fails."""
    model = str(prepare(MODEL))
    data = folder / "prompts.jsonl"
    prompts = load_prompts("bundled:chat", format="auto", base=folder, categories=(), offline=True)
    texts = [prompt.turns[0] for prompt in prompts.prompts]
    data.write_text("\n".join(json.dumps({"prompt": text}) for text in texts))
    serve, bench = folder / "serve.json", folder / "bench.json"
    speculative = {
        f"ngram-{k}": {
            "speculative-config": {
                "method": "ngram",
                "num_speculative_tokens": k,
                "prompt_lookup_max": 4,
            }
        }
        for k in cells.lengths
    }
    serve.write_text(json.dumps({"baseline": {}, **speculative}))
    bench.write_text(
        json.dumps(
            {
                f"batch-{size}": {
                    "max-concurrency": size,
                    "num-prompts": size * cells.requests,
                    "num-warmups": size,
                }
                for size in cells.batch_sizes
            }
        )
    )
    port = _free_port()
    vllm = [sys.executable, "-m", "benchmarks.sweep_efficiency.vllm_cli"]
    flags = ["--host", "127.0.0.1", "--port", str(port)]
    engine = [
        *("--dtype", cells.dtype, "--max-model-len", str(CONTEXT)),
        *("--max-num-seqs", str(max(cells.batch_sizes))),
        *("--enforce-eager", "--no-enable-prefix-caching"),
    ]
    asks = [
        *("--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--model", model),
        *("--dataset-name", "custom", "--dataset-path", str(data), "--ignore-eos"),
        *("--custom-output-len", str(cells.output_tokens), "--temperature", "0"),
    ]
    command = [
        *(*vllm, "bench", "sweep", "serve", "--output-dir", str(folder / "theirs")),
        *("--serve-cmd", shlex.join([*vllm, "serve", model, *flags, *engine])),
        *("--bench-cmd", shlex.join([*vllm, "bench", "serve", *flags, *asks])),
        *("--serve-params", str(serve), "--bench-params", str(bench)),
        *("--num-runs", str(cells.runs), "--experiment-name", "sweep", "--show-stdout"),
        # Without a command it resets the caches after a run, for a program called "vllm" alone.
        # Nothing is cached here.
        *("--after-bench-cmd", "true"),
    ]
    cpus = compute_cpus(allowed_cpus())
    variables = engine_environment(accelerators=False, cpus=cpus, given={})
    variables.pop("VLLM_ENABLE_V1_MULTIPROCESSING")  # ours alone: theirs is started as it comes
    wall_s = _timed(command, variables, folder / "theirs.log")
    found = [json.loads(path.read_text()) for path in (folder / "theirs").rglob("run=*.json")]
    done = sum(int(run["completed"]) for run in found)
    assert len(found) == cells.count * cells.runs, f"{len(found)} runs; see {folder}/theirs.log"
    return Took(wall_s, done, 1 + len(cells.lengths))


def ours(cells: Cells, folder: Path) -> tuple[Took, SweepFolder]:
    file = folder / "ours.yaml"
    experiment = {
        "name": "ours",
        "target": MODEL,
        "engine": {k: v for k, v in cells.engine.items() if k != "max_num_seqs"},
        "sweep": {
            "speculation": [
                {
                    "method": "ngram",
                    "speculation_length": list(cells.lengths),
                    "prompt_lookup_max": 4,
                }
            ],
            "batch_size": list(cells.batch_sizes),
        },
        "workloads": [
            {
                "name": "chat",
                "prompts": "bundled:chat",
                "output_tokens": cells.output_tokens,
                "allow_reuse": True,
            }
        ],
        "measure": {
            "pairs": {"min": cells.runs, "max": cells.runs},
            "requests_per_block": cells.requests,
            "looks": "once",
        },
        "placement": {"strategy": "shared", "gpus_per_replica": 0},
    }
    file.write_text(json.dumps(experiment))
    command = [sys.executable, "-m", "orchestrator", "sweep", str(file)]
    command += ["--results", str(folder / "results")]
    wall_s = _timed(command, {}, folder / "ours.log", accepted=(0, 4, 5))
    results = SweepFolder(folder / "results" / "ours")
    trials = [results.trial(trial.id) for trial in results.trials()]
    done = sum(len(block.requests) for trial in trials for pair in trial.pairs() for block in pair)
    starts = sum(run.engine_starts for run in results.runs())
    return Took(wall_s, done, starts), results


def _timed(
    command: list[str], variables: dict[str, str], log: Path, accepted: tuple[int, ...] = (0,)
) -> float:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    began = time.monotonic()
    with log.open("w") as output:
        ended = subprocess.run(
            command,
            env={**os.environ, **variables, "PYTHONPATH": path},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    took = time.monotonic() - began
    if ended.returncode not in accepted:
        print(log.read_text()[-4000:], file=sys.stderr)
        raise SystemExit(f"{command[2]} ended with {ended.returncode}; log: {log}")
    return took


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lengths", type=int, nargs="+", default=[4])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--runs", type=int, default=2, help="runs of theirs, pairs of ours")
    parser.add_argument("--requests", type=int, default=4, help="for each request in flight")
    parser.add_argument("--output-tokens", type=int, default=16)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--keep", type=Path, help="folder for what both wrote")
    given = parser.parse_args()
    cells = Cells(
        tuple(given.lengths),
        tuple(given.batch_sizes),
        given.runs,
        given.requests,
        given.output_tokens,
        given.dtype,
    )
    with tempfile.TemporaryDirectory(prefix="sweep-efficiency-") as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        prepare(MODEL)
        mine, results = ours(cells, folder)
        other = theirs(cells, folder)
        print(f"{processor()['model']}, {len(allowed_cpus())} cores; {cells}")
        print("| | wall s | measured requests | engine starts |\n|---|---|---|---|")
        for name, took in (("vllm bench sweep serve", other), ("ours, in pairs", mine)):
            print(f"| {name} | {took.wall_s:.0f} | {took.requests} | {took.starts} |")
        print(f"ours / theirs: {mine.wall_s / other.wall_s:.2f}")
        for run in results.runs():
            print(run)
    return 0 if mine.wall_s <= other.wall_s / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
