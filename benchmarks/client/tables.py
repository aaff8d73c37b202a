"""The page with the benchmark's results."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

from scenario import ACCURACY, FULL_LOAD, Outcome

OURS = "ours"
QUIET_CORES = 0.25
"""More other work than this, and errors below a millisecond are the scheduler's, not the tool's."""


def page(outcomes: list[Outcome], versions: dict[str, str], repeats: int) -> str:
    """Markdown: the two tables, whether the goals were met, and the conditions."""
    full = [each for each in outcomes if each.scenario == FULL_LOAD.name]
    paced = [each for each in outcomes if each.scenario == ACCURACY.name]
    parts = [
        "# The load generator against its peers",
        "Made by `make bench-client` (`python benchmarks/client/bench_client.py`). Every tool "
        "sends the same requests to the same null server, which computes nothing and writes into "
        "every chunk when it was sent: the error of a tool is what it reports minus those times.",
        f"## Full load: {FULL_LOAD.streams} streams, {FULL_LOAD.requests} requests of "
        f"{FULL_LOAD.tokens} tokens, 1,000 tokens/s offered per stream",
        _table(
            ("tool", "output tokens/s", "times the best peer's", "note"),
            [(_name(each, versions), *_speed(each, full)) for each in full],
        ),
        f"## Accuracy: about {ACCURACY.streams} streams of 50 tokens/s "
        f"({ACCURACY.requests} requests of {ACCURACY.tokens} tokens, started evenly, "
        f"{ACCURACY.rate_rps:.1f} a second)",
        _table(
            ("tool", "TTFT error p99, ms", "TPOT error p99, ms", "note"),
            [
                (
                    _name(each, versions),
                    _ms(each.ttft_error_p99_s),
                    _ms(each.tpot_error_p99_s),
                    _note(each),
                )
                for each in paced
            ],
        ),
        "## Goals\n\n" + "\n".join(f"- {line}" for line in _goals(full, paced)),
        "## Conditions\n\n" + "\n".join(f"- {line}" for line in _conditions(outcomes, repeats)),
    ]
    return "\n\n".join(parts) + "\n"


def _goals(full: list[Outcome], paced: list[Outcome]) -> list[str]:
    ours = next((each for each in full if each.tool == OURS), None)
    lines = []
    best = max((each.tok_per_s or 0.0 for each in full if each.tool != OURS), default=0.0)
    if ours is None or not ours.tok_per_s or not best:
        lines.append("at least 3 times the output tokens/s of the best peer: not measured")
    else:
        ratio = ours.tok_per_s / best
        lines.append(
            "at least 3 times the output tokens/s of the best peer: "
            f"{'met' if ratio >= 3 else 'NOT met'} ({ratio:.1f} times)"
        )
    own = next((each for each in paced if each.tool == OURS), None)
    for figure, field in (("TTFT", "ttft_error_p99_s"), ("TPOT", "tpot_error_p99_s")):
        value = getattr(own, field, None)
        others = [
            getattr(each, field)
            for each in paced
            if each.tool != OURS and getattr(each, field) is not None
        ]
        if value is None or not others:
            lines.append(
                f"p99 error of {figure} under 1 ms and not above the best peer's: not measured"
            )
            continue
        busy = max(each.other_cores or 0.0 for each in paced)
        if busy > QUIET_CORES:
            lines.append(
                f"p99 error of {figure} under 1 ms and not above the best peer's: cannot tell, the "
                f"machine did {busy:.1f} cores of other work; measure again on a quiet one "
                f"({_ms(value)} ms; best peer {_ms(min(others))} ms)"
            )
            continue
        met = value < 0.001 and value <= min(others)
        lines.append(
            f"p99 error of {figure} under 1 ms and not above the best peer's: "
            f"{'met' if met else 'NOT met'} ({_ms(value)} ms; best peer {_ms(min(others))} ms)"
        )
    return lines


def _conditions(outcomes: list[Outcome], repeats: int) -> list[str]:
    other = [each.other_cores for each in outcomes if each.other_cores is not None]
    busy = f"{min(other):.2f} to {max(other):.2f}" if other else "unknown"
    return [
        f"{datetime.date.today():%Y-%m-%d}, {_processor()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, {platform.system()} {platform.release()}",
        "the client, with all its processes, on one core, the server on another, all at "
        "niceness -5 where allowed",
        f"figures are medians of {repeats} run(s), the tools taking turns",
        f"other work on the machine during the runs: {busy} cores (0 would be a quiet machine; "
        "time taken away from client and server alike, and unequally by chance)",
        "tokens/s: output tokens of completed requests / time from the first start to the last "
        "end, as the tool itself counts them; start-up and reading of results left out for all",
        "peers count tokens from the server's `usage` and were given the cheapest possible "
        "tokenizer; GuideLLM was limited to one worker process, the others ran as they come",
        "TTFT as each tool reports it, from its own start of the request; opening a connection is "
        "in it where the tool opens one",
    ]


def _speed(each: Outcome, all_: list[Outcome]) -> tuple[str, str, str]:
    best = max((other.tok_per_s or 0.0 for other in all_ if other.tool != OURS), default=0.0)
    ratio = f"{each.tok_per_s / best:.2f}" if each.tok_per_s and best else "n/a"
    speed = "n/a" if each.tok_per_s is None else f"{each.tok_per_s:,.0f}"
    return speed, ratio, _note(each)


def _note(each: Outcome) -> str:
    text = each.note if each.error is None else f"failed: {each.error}"
    return " ".join(text.split()).replace("|", "/")


def _name(each: Outcome, versions: dict[str, str]) -> str:
    return f"{each.tool} {versions[each.tool]}" if each.tool in versions else each.tool


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _ms(seconds: float | None) -> str:
    return "n/a" if seconds is None else f"{seconds * 1e3:.3f}"


def _processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.partition(":")[2].strip() for line in info.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()
