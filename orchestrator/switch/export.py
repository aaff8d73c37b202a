"""A switch's records as the workload of a sweep. Pure: lines in, rows out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

Line = Mapping[str, Any]


def usable(lines: Iterable[Line]) -> list[Line]:
    """What callers asked and an engine counted, in order of arrival.

    Left out: mirrored requests (nobody asked for them twice), requests that failed, and those whose
    tokens were not counted.
    """
    kept = [
        line
        for line in lines
        if not line.get("mirrored")
        and line.get("status") == 200
        and line.get("prompt_tokens")
        and line.get("output_tokens")
    ]
    return sorted(kept, key=lambda line: float(line["at"]))


def trace_csv(lines: Iterable[Line]) -> str:
    """Arrivals and lengths, no text: in Azure's columns, which `load.trace` reads."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("TIMESTAMP", "ContextTokens", "GeneratedTokens"))
    for line in usable(lines):
        at = datetime.fromtimestamp(float(line["at"]), UTC).replace(tzinfo=None)
        rows.writerow((at.isoformat(" ", "microseconds"), *_tokens(line)))
    return out.getvalue()


def prompts(lines: Iterable[Line]) -> list[dict[str, Any]]:
    """What was asked, as rows of a `messages` or `prompt` workload; only where the records hold
    texts."""
    rows: list[dict[str, Any]] = []
    for line in usable(lines):
        row: dict[str, Any] = {"id": line["id"]}
        if line.get("category"):
            row["category"] = line["category"]
        if isinstance(line.get("messages"), list):
            rows.append({**row, "messages": line["messages"]})
        elif isinstance(line.get("prompt"), str):
            rows.append({**row, "prompt": line["prompt"]})
    return rows


def _tokens(line: Line) -> tuple[int, int]:
    return int(line["prompt_tokens"]), int(line["output_tokens"])
