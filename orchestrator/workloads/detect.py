"""Which format a file has, told from its content. Two possible readings are an error, not a guess.

| content | format |
|---|---|
| `PAR1` | parquet |
| a header line with a text column | csv |
| JSON with `conversations` | sharegpt |
| JSON with `question_id` and `turns`, only MT-Bench's categories | mt-bench |
| JSON with `question_id` and `turns` | spec-bench |
| other JSON with a text column | jsonl |
| anything else | text, one prompt a line |
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from orchestrator.workloads.mt_bench import CATEGORIES
from orchestrator.workloads.plain import TEXT_COLUMNS
from orchestrator.workloads.reading import Reading, Row

FORMATS = ("jsonl", "csv", "parquet", "text", "spec-bench", "sharegpt", "mt-bench")
TRACE_COLUMNS = frozenset({"contexttokens", "generatedtokens", "request tokens", "response tokens"})


def container_of(raw: bytes, path: Path, reading: Reading) -> str:
    """parquet, json, csv or text.

    Raises: WorkloadError when the beginning can be read in two ways, or is an arrival trace.
    """
    if raw.startswith(b"PAR1"):
        return "parquet"
    head = raw[:65536].removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace").lstrip()
    if head.startswith("{"):
        return "json"
    if head.startswith("["):
        inside = head[1:].lstrip()
        if inside.startswith(("{", "]")):
            return "json"
        if path.suffix.lower() in (".json", ".jsonl"):
            raise reading.stop(
                1, "", "must be an array of JSON objects, or one object a line", head[:60]
            )
        return "text"
    header = _header(head)
    if TRACE_COLUMNS & set(header):
        raise reading.stop(
            1,
            "format",
            "must hold prompts, but this is an arrival trace (token counts without text)",
            header,
            "name it as the workload's trace, and a prompt set beside it",
        )
    known = [name for name in header if name in TEXT_COLUMNS]
    if path.suffix.lower() in (".csv", ".tsv"):
        if not known:
            raise reading.stop(
                1,
                "header",
                f"must name one of the columns {', '.join(TEXT_COLUMNS)}",
                header,
                "add a header line, or say format: text",
            )
        return "csv"
    if known and all(name.isidentifier() for name in header):
        if len(header) > 1 and path.suffix.lower() != ".txt":
            return "csv"
        raise reading.stop(
            1,
            "format",
            "is ambiguous: the first line may be a CSV header or a prompt",
            head.split("\n", 1)[0],
            "say format: csv or format: text",
        )
    return "text"


def record_format(rows: Sequence[Row], reading: Reading) -> str:
    """jsonl, spec-bench, mt-bench or sharegpt, told from the first record's keys.

    Raises: WorkloadError when the keys allow two readings, or none.
    """
    first = rows[0]
    keys = set(first.fields)
    readings = []
    if "conversations" in keys:
        readings.append("sharegpt")
    if {"question_id", "turns", "category"} <= keys:
        categories = {row.fields.get("category") for row in rows if _has_text_category(row)}
        readings.append("mt-bench" if categories <= CATEGORIES else "spec-bench")
    columns = [name for name in TEXT_COLUMNS if name in keys]
    readings.extend(["jsonl"] if columns and not (columns == ["turns"] and readings) else [])
    if len(readings) > 1 or len(columns) > 1:
        candidates = [name for name in ("conversations", *TEXT_COLUMNS) if name in keys]
        raise reading.stop(
            first.line,
            "format",
            "is ambiguous: several columns may hold the prompt",
            candidates,
            "say which format it is, or keep one of these columns",
        )
    if not readings:
        raise reading.stop(
            first.line,
            "format",
            f"must be recognisable: one of the columns conversations, {', '.join(TEXT_COLUMNS)}",
            sorted(keys),
            "rename the column that holds the prompt",
        )
    return readings[0]


def _has_text_category(row: Row) -> bool:
    return isinstance(row.fields.get("category"), str)


def _header(head: str) -> list[str]:
    line = head.split("\n", 1)[0]
    try:
        cells = next(csv.reader([line], delimiter="\t" if "\t" in line else ","), [])
    except csv.Error:
        return []
    return [cell.strip().lower() for cell in cells]
