"""One block on disk: requests as Parquet (one row each), everything else as JSON beside it.

The JSON is written last: a block exists when its JSON does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.errors import StoreError
from orchestrator.records import (
    BlockRecord,
    ClientHealth,
    CounterSnapshot,
    RequestError,
    RequestRecord,
    Sample,
    StageSums,
)
from orchestrator.store.atomic import read_json, write_atomically, write_json

_REQUEST_COLUMNS = pa.schema(
    [
        ("request_id", pa.string()),
        ("prompt_id", pa.string()),
        ("category", pa.string()),
        ("turn", pa.int32()),
        ("offset_s", pa.float64()),
        ("sent_s", pa.float64()),
        ("chunk_s", pa.list_(pa.float64())),
        ("chunk_tokens", pa.list_(pa.int32())),
        ("end_s", pa.float64()),
        ("input_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("max_tokens", pa.int32()),
        ("finish_reason", pa.string()),
        ("text", pa.string()),
        ("token_ids", pa.list_(pa.int32())),
        ("tokens_from", pa.string()),
        ("http_status", pa.int32()),
        ("error", pa.string()),
        ("error_text", pa.string()),
    ]
)


def block_stem(block: BlockRecord) -> str:
    """`warmup-A`, `003-B`: A is the baseline, B the speculative arm."""
    letter = "A" if block.arm == "baseline" else "B"
    return f"warmup-{letter}" if block.kind == "warmup" else f"{block.pair_index:03d}-{letter}"


def write_block(folder: Path, block: BlockRecord) -> Path:
    """Write `block` into `folder` and return the path of its JSON. Raises: StoreError.

    What is measured is flushed to the disk; a warm-up is not, since nothing is derived from it.
    """
    stem = block_stem(block)
    durable = block.kind != "warmup"
    write_requests(folder / f"{stem}.parquet", block.requests, durable=durable)
    facts = {
        field.name: getattr(block, field.name)
        for field in fields(block)
        if field.name not in ("requests", "client", "counters_before", "counters_after", "samples")
    }
    facts["client"] = asdict(block.client)
    for name in ("counters_before", "counters_after"):
        snapshot = getattr(block, name)
        facts[name] = None if snapshot is None else asdict(snapshot)
    facts["samples"] = [{"at_s": sample.at_s, "values": sample.values} for sample in block.samples]
    path = folder / f"{stem}.json"
    write_json(path, facts, durable=durable)
    return path


def write_requests(path: Path, requests: Sequence[RequestRecord], *, durable: bool = True) -> None:
    """One row a request. Raises: StoreError."""
    table = pa.Table.from_pylist([_request_row(one) for one in requests], schema=_REQUEST_COLUMNS)
    write_atomically(
        path,
        lambda temporary: pq.write_table(table, temporary, compression="zstd"),
        durable=durable,
    )


def read_block(path: Path) -> BlockRecord:
    """Read back what `write_block` wrote; `path` is the JSON. Raises: StoreError."""
    facts: dict[str, Any] = read_json(path)
    requests_path = path.with_suffix(".parquet")
    try:
        with pq.ParquetFile(requests_path) as file:  # a dataset's machinery costs more than a block
            rows = file.read(use_threads=False).to_pylist()
        return BlockRecord(
            trial_id=facts["trial_id"],
            pair_index=facts["pair_index"],
            arm=facts["arm"],
            position=facts["position"],
            kind=facts["kind"],
            started_unix_s=facts["started_unix_s"],
            duration_s=facts["duration_s"],
            requests=tuple(_request(row) for row in rows),
            client=ClientHealth(**facts["client"]),
            counters_before=_counters(facts["counters_before"]),
            counters_after=_counters(facts["counters_after"]),
            samples=tuple(Sample(item["at_s"], item["values"]) for item in facts["samples"]),
            notes=tuple(facts["notes"]),
            simulated=facts["simulated"],
            ended_early=facts.get("ended_early"),
        )
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{requests_path}: cannot be read back ({type(error).__name__}: {error}); move "
            f"{path.name} and its .parquet away and run the sweep again: the pair is measured anew"
        ) from error


def _request_row(request: RequestRecord) -> dict[str, Any]:
    row = {field.name: getattr(request, field.name) for field in fields(request)}
    row["error"] = None if request.error is None else request.error.value
    # Lone surrogates (a server may send any bytes) are no valid UTF-8 and Parquet refuses them.
    for name in ("text", "error_text"):
        if row[name] is not None:
            row[name] = row[name].encode("utf-8", "replace").decode("utf-8")
    return row


def _request(row: dict[str, Any]) -> RequestRecord:
    for name in ("chunk_s", "chunk_tokens", "token_ids"):
        if row[name] is not None:
            row[name] = tuple(row[name])
    row["error"] = None if row["error"] is None else RequestError(row["error"])
    return RequestRecord(**row)


def _counters(value: dict[str, Any] | None) -> CounterSnapshot | None:
    if value is None:
        return None
    value["replica_ids"] = tuple(value["replica_ids"])
    if value["accepted_per_position"] is not None:
        value["accepted_per_position"] = tuple(value["accepted_per_position"])
    if value.get("stages") is not None:
        value["stages"] = tuple(StageSums(**sums) for sums in value["stages"])
    return CounterSnapshot(**value)
