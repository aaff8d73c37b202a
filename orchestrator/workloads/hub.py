"""Data sets of the Hugging Face hub: `hf:ID`, `hf:ID:split`, `hf:ID@revision:split`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.errors import MissingExtra, WorkloadError
from orchestrator.workloads.reading import Reading, Row

_REFERENCE = re.compile(
    r"(?P<id>[\w.-]+(/[\w.-]+)?)(@(?P<revision>[\w./-]+))?(:(?P<split>[\w.\[\]%:+-]+))?"
)


def hub_rows(reference: str, reading: Reading, *, offline: bool) -> Iterator[Row]:
    """The records of one split (`train` unless named). Code of the data set is never run.

    Raises: WorkloadError offline, for a malformed reference, or when the hub refuses;
    MissingExtra without the package `datasets`.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise WorkloadError(
            f"prompts: must be hf:ID, hf:ID:split or hf:ID@revision:split, got 'hf:{reference}'"
        )
    if offline:
        raise WorkloadError(
            f"prompts: must be readable offline, got 'hf:{reference}'; allow the network, or save "
            "the data set as JSONL or Parquet where there is one and name that file"
        )
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("datasets", "hub", f"the prompt set hf:{reference}") from error
    split = match["split"] or "train"
    try:
        records = datasets.load_dataset(match["id"], split=split, revision=match["revision"])
    # The package raises errors of its own, of requests, of fsspec and of its builders.
    except Exception as error:
        cause = str(error).partition("\n")[0] or type(error).__name__
        raise WorkloadError(
            f"prompts: hf:{reference} could not be loaded ({cause}); check the id, the split and "
            "the network, or save it as a file and name that"
        ) from error
    return (Row(None, ordinal, fields) for ordinal, fields in enumerate(records, start=1))
