"""Our load generator against `vllm bench serve`, GuideLLM and AIPerf, on the same null server.

    python benchmarks/client/bench_client.py [--repeats 3] [--only ours,AIPerf] [--write docs/…md]

The client has one core, the server another. Peers are installed into environments of their own
under ~/.cache/speculation-orchestrator/bench-client (or --cache).
"""

# ruff: noqa: E402  (the repository has to be on the path before its package is imported)
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil
from peers import AiPerf, GuideLlm, Peer, PeerFailed, VllmBench
from scenario import ACCURACY, FULL_LOAD, Claim, Outcome, Scenario, judge, middle
from tables import page
from tokenizers import Tokenizer, models, pre_tokenizers

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.simulated.null_process import NullProcess, running_null_server
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt, Timeouts
from orchestrator.plan.trial import LoadPoint, Sampling
from orchestrator.ports import Endpoint

OURS = "ours"
CLIENT_CORE, SERVER_CORE = 0, 1
TIME_LIMIT_S = 420


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", help="names of tools, separated by commas")
    parser.add_argument("--scenario", choices=[FULL_LOAD.name, ACCURACY.name], help="only this one")
    parser.add_argument("--write", type=Path, help="write the page here as well")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        / "speculation-orchestrator" / "bench-client",
    )  # fmt: skip
    arguments = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        sys.exit("the benchmark needs two cores: one for the client, one for the server")
    arguments.cache.mkdir(parents=True, exist_ok=True)
    wanted = set(arguments.only.split(",")) if arguments.only else None

    versions: dict[str, str] = {}
    peers: list[Peer] = []
    outcomes: list[Outcome] = []
    for peer in (VllmBench(), GuideLlm(arguments.cache), AiPerf(arguments.cache)):
        if wanted is not None and peer.name not in wanted:
            continue
        try:
            say(f"installing {peer.name}")
            versions[peer.name] = peer.ensure(arguments.cache)
            peers.append(peer)
        except PeerFailed as fault:
            outcomes += [
                Outcome(peer.name, each.name, error=f"not installed: {fault}")
                for each in (FULL_LOAD, ACCURACY)
            ]
    os.sched_setaffinity(0, {CLIENT_CORE})
    # Our client asks for this by itself; so that it is no advantage, every tool gets it, and the
    # server too.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    for scenario in (FULL_LOAD, ACCURACY):
        if arguments.scenario not in (None, scenario.name):
            continue
        runs: dict[str, list[Outcome]] = {}
        # Round by round, so that a busy minute does not hit one tool alone.
        for _ in range(arguments.repeats):
            if wanted is None or OURS in wanted:
                runs.setdefault(OURS, []).append(measured(OURS, scenario, run_ours))
            for peer in peers:
                run = peer_run(peer)
                runs.setdefault(peer.name, []).append(measured(peer.name, scenario, run))
        outcomes += [middle(each) for each in runs.values()]
    text = page(outcomes, versions, arguments.repeats)
    print(text)
    if arguments.write:
        arguments.write.write_text(text)


Run = Callable[[Scenario, NullProcess], tuple[list[Claim], float, str]]


def measured(tool: str, scenario: Scenario, run: Run) -> Outcome:
    """One run of one tool, with what else the machine did meanwhile."""
    say(f"{tool}: {scenario.name}")
    with running_null_server(scenario.schedule.write(), core=SERVER_CORE) as server:
        process = psutil.Process(server.pid)
        ours = _own_cpu_s() + sum(process.cpu_times()[:2])
        busy, began_s = _busy_s(), time.monotonic()
        try:
            claims, duration_s, note = run(scenario, server)
        except PeerFailed as fault:
            return Outcome(tool, scenario.name, error=str(fault))
        wall_s = time.monotonic() - began_s
        ours = _own_cpu_s() + sum(process.cpu_times()[:2]) - ours
        other = max(0.0, _busy_s() - busy - ours) / wall_s
    if len(claims) < scenario.requests * 0.99:
        note += f" only {len(claims)} of {scenario.requests} requests completed"
    outcome = judge(tool, scenario, claims, duration_s)
    outcome = dataclasses.replace(outcome, other_cores=other, note=note.strip())
    say(f"  {outcome.tok_per_s:,.0f} tokens/s; other work: {other:.2f} cores; {outcome.note}")
    return outcome


def peer_run(peer: Peer) -> Run:
    def run(scenario: Scenario, server: NullProcess) -> tuple[list[Claim], float, str]:
        with tempfile.TemporaryDirectory(prefix="bench-client-") as name:
            folder = Path(name)
            tokenizer = write_tokenizer(folder / "tokenizer")
            command = peer.command(scenario, server.base_url, folder, tokenizer)
            log = folder / "log"
            with log.open("w") as stream:
                try:
                    done = subprocess.run(
                        command,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                        timeout=TIME_LIMIT_S,
                        env={**os.environ, **peer.environment()},
                    )
                except subprocess.TimeoutExpired:
                    raise PeerFailed(f"no result within {TIME_LIMIT_S} s") from None
            try:
                claims, duration_s = peer.read(folder)
            except (OSError, LookupError, ValueError) as fault:
                tail = log.read_text(errors="replace")[-300:]
                raise PeerFailed(
                    f"ended with status {done.returncode}, no result read "
                    f"({type(fault).__name__}: {fault}): {tail}"
                ) from fault
            if not claims:
                raise PeerFailed("no request completed")
            return claims, duration_s, ""

    return run


def run_ours(scenario: Scenario, server: NullProcess) -> tuple[list[Claim], float, str]:
    prompt = Prompt("p", "null", ("A server that computes nothing. " * 12,))
    rate = scenario.rate_rps if scenario.mode == "open" else None
    requests = tuple(
        PlannedRequest(f"r{i}", prompt, i / rate if rate else None, scenario.tokens, seed=None)
        for i in range(scenario.requests)
    )
    load = LoadPoint("closed", concurrency=scenario.streams)
    if rate:
        load = LoadPoint("open", rate_rps=rate, arrivals="constant")
    plan = BlockPlan(requests, load, Sampling(), "chat", True, "first_turn", Timeouts())
    with HttpLoadClient(workers=1) as client:
        began_s = time.monotonic()
        seen = client.run_block(Endpoint("null", server.base_url, "null"), plan)
        wall_s = time.monotonic() - began_s
    claims = [
        Claim(
            record.chunk_s[0] - (record.sent_s or 0.0),
            (record.chunk_s[-1] - record.chunk_s[0]) / ((record.output_tokens or 0) - 1),
            record.output_tokens or 0,
            record.text,
        )
        for record in seen.requests
        if record.completed and (record.output_tokens or 0) > 1
    ]
    cpu = seen.client.cpu_fraction or 0.0
    return (
        claims,
        seen.duration_s,
        (f"{cpu:.0%} of its core; {wall_s - seen.duration_s:.1f} s more to read the answers"),
    )


def write_tokenizer(folder: Path) -> Path:
    """A tokenizer that splits at spaces: the cheapest there is, for the peers that want one."""
    folder.mkdir()
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", '
        '"model_max_length": 100000, '
        '"chat_template": "{% for m in messages %}{{ m[\'content\'] }}{% endfor %}"}'
    )
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


def _own_cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
