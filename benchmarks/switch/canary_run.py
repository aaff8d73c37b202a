"""A canary on real engines, under live load: a ramp to everybody, then accidents.

    python benchmarks/switch/canary_run.py [--hold 15] [--rps 0.6] [--write docs/canary-run.md]

Starts the two engines of serve_configs/side_by_side.yaml (SmolLM2-135M, with and without n-gram
speculation) behind the switch, sends requests all the time from a thread each, and

1. ramps 5, 25, 50, 100 % with short holds;
2. stops the speculative engine with SIGSTOP (every process of it), later lets it go on;
3. kills it with SIGKILL; Serve starts another;

and counts what callers saw: failed requests, and from when on everybody had the baseline.
"""

# ruff: noqa: E402  (the repository has to be on the path before its package is imported)
from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil

from orchestrator.adapters.local.host_facts import processor
from orchestrator.adapters.ray_local import free_port
from orchestrator.adapters.serve_foreground import serve_file_foreground
from orchestrator.adapters.switch_client import SwitchClient, token_of
from orchestrator.serving.serve_file import ServedSwitch, ServeFile, read_serve_file
from orchestrator.switch.config import switch_config

PERIOD_S = 4.0
STEPS = (0.05, 0.25, 0.5, 1.0)
QUESTIONS = (
    "Name three rivers and say where each of them ends.",
    "Repeat twice: one two three four five six seven.",
    "Write a short list of things to pack for a walk in the rain.",
    "Explain in two sentences why the sky is blue.",
)


@dataclass(frozen=True)
class Seen:
    at_s: float
    ended_s: float
    arm: str | None
    error: str | None


class Load:
    """Requests at random times, each on a thread of its own, for ever."""

    def __init__(self, url: str, rps: float) -> None:
        self._url, self._rps, self._over = url, rps, threading.Event()
        self.seen: list[Seen] = []
        self._threads: list[threading.Thread] = []
        self._rng = random.Random(7)
        self._sender = threading.Thread(target=self._send)
        self._sender.start()

    def _send(self) -> None:
        number = 0
        while not self._over.wait(self._rng.expovariate(self._rps)):
            number += 1
            thread = threading.Thread(target=self._ask, args=(number,))
            thread.start()
            self._threads.append(thread)

    def _ask(self, number: int) -> None:
        body = {
            "model": "smollm2-135m-instruct",
            "messages": [{"role": "user", "content": QUESTIONS[number % len(QUESTIONS)]}],
            "max_tokens": 24,
            "temperature": 0,
            "stream": True,
        }
        request = urllib.request.Request(
            f"{self._url}/v1/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "X-User-Id": f"user-{number}"},
        )
        begun, arm, error = time.time(), None, None
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                arm = answer.headers.get("x-arm")
                text = answer.read()
            if b"data: [DONE]" not in text:
                error = "cut off"
        except urllib.error.HTTPError as failed:
            error = f"HTTP {failed.code}"
        except OSError as failed:
            error = type(failed).__name__
        self.seen.append(Seen(begun, time.time(), arm, error))

    def stop(self) -> None:
        self._over.set()
        for thread in (self._sender, *self._threads):
            thread.join(130)

    def between(self, begun_s: float, ended_s: float) -> list[Seen]:
        return [one for one in self.seen if begun_s <= one.at_s < ended_s]


@contextmanager
def site(state: Path, hold_s: float) -> Iterator[tuple[str, SwitchClient]]:
    """Public address and admin API, while the engines run."""
    file = read_serve_file(ROOT / "serve_configs" / "side_by_side.yaml")
    private = tuple(
        replace(
            one,
            route_prefix=None,
            engine=one.engine.model_copy(update={"direct": f"{state}/{one.name}.sock"}),
        )
        for one in file.applications
    )
    port, admin = free_port(), free_port()
    config = switch_config(
        {
            "state": str(state),
            "arm_header": "x-arm",
            "policy": {"mode": "off"},
            "health": {"period_s": PERIOD_S, "return_after_s": 5.0},
            "admin": {"port": admin},
        }
    )
    over, ready = threading.Event(), threading.Event()

    def say(text: str) -> None:
        print(text, flush=True)
        if text.startswith("ready"):
            ready.set()

    whole = ServeFile("127.0.0.1", port, private, ServedSwitch("switch", "/", config))
    thread = threading.Thread(
        target=serve_file_foreground,
        args=(whole,),
        kwargs={"on_message": say, "until": over, "offline": True},
    )
    thread.start()
    try:
        while not ready.wait(1):
            if not thread.is_alive():
                sys.exit("the engines did not start")
        client = SwitchClient(f"http://127.0.0.1:{admin}", token_of(None, state))
        yield f"http://127.0.0.1:{port}", client
    finally:
        over.set()
        thread.join()


def engine_processes(state: Path) -> list[psutil.Process]:
    """Of the speculative engine: its replica, and what that has started."""
    for process in psutil.process_iter(["cmdline"]):
        if "ServeReplica:speculative" in " ".join(process.info["cmdline"] or ()):
            return [process, *process.children(recursive=True)]
    sys.exit("the speculative engine's processes were not found")


def when(client: SwitchClient, holds: Any, patience_s: float = 240.0) -> float:
    begun = time.time()
    while not holds(client.get("/admin/state")):
        if time.time() - begun > patience_s:
            sys.exit(f"it did not come about within {patience_s:g} s")
        time.sleep(0.1)
    return time.time()


def run(hold_s: float, rps: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="canary-") as name:
        state = Path(name)
        with site(state, hold_s) as (url, client):
            load = Load(url, rps)
            try:
                return accidents(client, load, state, hold_s)
            finally:
                load.stop()


def accidents(client: SwitchClient, load: Load, state: Path, hold_s: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    begun = time.time()
    ramp = {"mode": "ramp", "ramp": {"steps": list(STEPS), "hold_s": hold_s}}
    client.post("/admin/policy", {"policy": ramp, "why": "the canary begins"})
    full = when(client, lambda now: now["share"] == 1.0)
    time.sleep(hold_s)
    found["ramp"] = {"took_s": full - begun, **told(load.between(begun, time.time()))}

    for accident, number in (("SIGSTOP", signal.SIGSTOP), ("SIGKILL", signal.SIGKILL)):
        when(client, lambda now: now["share"] == 1.0)
        time.sleep(hold_s / 2)
        victims = engine_processes(state)
        at = time.time()
        for process in victims:
            process.send_signal(number)
        fell = when(client, lambda now: not now["arms"]["speculative"]["up"])
        time.sleep(hold_s)
        if number == signal.SIGSTOP:
            for process in victims:
                process.send_signal(signal.SIGCONT)
        back = when(client, lambda now: now["share"] == 1.0)
        time.sleep(hold_s / 2)
        found[accident] = {
            "fell_after_s": fell - at,
            "back_after_s": back - at,
            **told(load.between(at - 60, time.time()), since_s=at),
        }
    load.stop()
    events = client.get("/admin/events?most=1000")
    found["events"] = [
        f"{event['at_s'] - begun:7.1f} s  {event['what']}: {event['why']}" for event in events
    ]
    return found


def told(seen: list[Seen], since_s: float = 0.0) -> dict[str, Any]:
    """What callers saw; those that had begun before `since_s` and ended after it count, too."""
    seen = [one for one in seen if one.ended_s >= since_s]
    errors = [one for one in seen if one.error is not None]
    return {
        "requests": len(seen),
        "failed": len(errors),
        "failed_begun_before": sum(one.at_s < since_s for one in errors),
        "errors": sorted({str(one.error) for one in errors}),
        "by_arm": {arm: sum(one.arm == arm for one in seen) for arm in ("baseline", "speculative")},
        "slowest_s": max((one.ended_s - one.at_s for one in seen), default=None),
    }


def page(found: dict[str, Any], arguments: argparse.Namespace) -> str:
    lines = [
        "# A canary on real engines",
        "",
        "Made by `python benchmarks/switch/canary_run.py`. SmolLM2-135M-Instruct on CPU, the arms "
        "of `serve_configs/side_by_side.yaml` behind the switch: a ramp to 100 %, then the "
        "speculative engine's processes stopped, and later killed, under load.",
        "",
        "| | requests | failed | of those, inside the engine when it went | baseline / speculative "
        "| fallback after | back at 100 % after | slowest request |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in ("ramp", "SIGSTOP", "SIGKILL"):
        one = found[name]
        arms = one["by_arm"]
        fell, back = one.get("fell_after_s"), one.get("back_after_s", one.get("took_s"))
        lines.append(
            f"| {name} | {one['requests']} | {one['failed']} | {one['failed_begun_before']} | "
            f"{arms['baseline']} / {arms['speculative']} | "
            f"{'—' if fell is None else f'{fell:.1f} s'} | {back:.1f} s | "
            f"{one['slowest_s']:.1f} s |"
        )
    lines += [
        "",
        f"Health period {PERIOD_S:g} s. Conditions: {datetime.date.today()}, "
        f"{processor()['model']}, {os.cpu_count()} cores, {arguments.rps:g} requests/s, holds of "
        f"{arguments.hold:g} s.",
        "",
        "The audit log:",
        "",
        "```",
        *found["events"],
        "```",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hold", type=float, default=15.0, help="seconds at each step")
    parser.add_argument("--rps", type=float, default=0.6)
    parser.add_argument("--write", type=Path, help="write the page here as well")
    arguments = parser.parse_args()
    found = run(arguments.hold, arguments.rps)
    text = page(found, arguments)
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
