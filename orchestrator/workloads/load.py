"""From a reference in the specification to a prompt set.

| reference | what it names |
|---|---|
| `bundled:chat` | a set that comes with the product |
| `prompts/mine.jsonl` | a file, relative to the file that names it |
| `hf:ID[@revision][:split]` | a data set of the Hugging Face hub |
| `random:count=64,tokens=128,seed=7` | random tokens, labelled as such |
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.errors import WorkloadError
from orchestrator.workloads.bundled import bundled_path
from orchestrator.workloads.detect import FORMATS, container_of, record_format
from orchestrator.workloads.hub import hub_rows
from orchestrator.workloads.limits import DEFAULT_LIMITS, Limits
from orchestrator.workloads.mt_bench import read_mt_bench
from orchestrator.workloads.plain import read_plain
from orchestrator.workloads.prompt_set import PromptSet, of_categories
from orchestrator.workloads.random_tokens import Tokenizer, random_prompts_from
from orchestrator.workloads.reading import Reading, ReadPrompt, Row, collect
from orchestrator.workloads.rows import (
    csv_rows,
    json_array_rows,
    json_line_rows,
    parquet_rows,
    text_rows,
)
from orchestrator.workloads.sharegpt import read_sharegpt
from orchestrator.workloads.spec_bench import read_spec_bench
from orchestrator.workloads.text_file import decode, read_bytes

READERS: dict[str, ReadPrompt] = {
    "jsonl": read_plain,
    "csv": read_plain,
    "parquet": read_plain,
    "text": read_plain,
    "spec-bench": read_spec_bench,
    "mt-bench": read_mt_bench,
    "sharegpt": read_sharegpt,
}


def load_prompts(
    reference: str,
    *,
    format: str = "auto",
    base: Path,
    categories: Sequence[str] = (),
    offline: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    tokenizer: Tokenizer | None = None,
) -> PromptSet:
    """The prompts that `reference` names, checked; only those of `categories` when some are named.

    `base` is the folder that relative paths start from; `tokenizer` is needed for `random:` alone.
    Raises: WorkloadError with every fault found (file:line, rule, value, hint); MissingExtra for a
    hub data set without the package that reads it.
    """
    if format != "auto" and format not in FORMATS:
        raise WorkloadError(f"format: must be auto or one of {', '.join(FORMATS)}, got {format!r}")
    scheme, _, rest = reference.partition(":")
    if scheme == "bundled":
        found = _from_file(rest, reference, bundled_path(rest), "jsonl", limits)
    elif scheme == "hf":
        found = _from_hub(rest, reference, format, offline, limits)
    elif scheme == "random":
        found = random_prompts_from(rest, tokenizer)
    else:
        path = base / Path(reference).expanduser()
        found = _from_file(path.stem, reference, path, format, limits)
    return of_categories(found, categories)


def _from_file(name: str, source: str, path: Path, format: str, limits: Limits) -> PromptSet:
    reading = Reading(str(path), limits)
    raw = read_bytes(path, reading)
    container = container_of(raw, path, reading) if format == "auto" else _container(format, raw)
    rows = _rows(container, raw, path, reading)
    if not rows:
        reading.raise_faults()
        raise reading.stop(None, "", "must hold at least one record", hint="the file is empty")
    if format == "auto" and container != "text":
        format = record_format(rows, reading)
    prompts = collect(rows, READERS[format if format != "auto" else "text"], reading)
    return PromptSet.of(name, source, prompts, notes=reading.notes())


def _container(format: str, raw: bytes) -> str:
    """The container of a named format: the benchmark sets come as JSON or Parquet."""
    if format in ("csv", "text"):
        return format
    if format == "parquet" or raw.startswith(b"PAR1"):
        return "parquet"
    return "json"


def _rows(container: str, raw: bytes, path: Path, reading: Reading) -> list[Row]:
    if container == "parquet":
        return list(parquet_rows(path, reading))
    text = decode(raw, reading)
    if container == "csv":
        return list(csv_rows(text, reading))
    if container == "text":
        return list(text_rows(text))
    if text.lstrip().startswith("["):
        return list(json_array_rows(text, reading))
    return list(json_line_rows(text, reading))


def _from_hub(id: str, source: str, format: str, offline: bool, limits: Limits) -> PromptSet:
    reading = Reading(source, limits)
    rows: list[Row] = []
    for row in hub_rows(id, reading, offline=offline):
        if len(rows) >= limits.prompts:
            raise reading.stop(
                None,
                "prompts",
                f"must hold at most {limits.prompts} prompts",
                hint="name a part of the split, as in train[:1000]",
            )
        rows.append(row)
    if not rows:
        raise reading.stop(None, "", "must hold at least one record")
    if format == "auto":
        format = record_format(rows, reading)
    return PromptSet.of(id, source, collect(rows, READERS[format], reading), notes=reading.notes())
