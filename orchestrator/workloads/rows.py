"""Records out of JSON, JSON Lines, CSV and Parquet, each with the line it starts on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.workloads.reading import Reading, Row

_decoder = json.JSONDecoder()


def json_line_rows(text: str, reading: Reading) -> Iterator[Row]:
    """One JSON object a line; blank lines are passed over; a bad line is a fault, not the end."""
    ordinal = 0
    # Not splitlines(): that would also break at U+2028, which JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        ordinal += 1
        try:
            value = json.loads(line)
        except RecursionError:
            reading.fault(number, "", "must not be nested this deeply", line)
            continue
        except ValueError as error:
            reading.fault(number, "", f"must be one JSON object ({error})", line)
            continue
        if isinstance(value, dict):
            yield Row(number, ordinal, value)
        else:
            reading.fault(number, "", "must be a JSON object", value, 'write {"prompt": "…"}')


def json_array_rows(text: str, reading: Reading) -> Iterator[Row]:
    """The objects of one JSON array (as ShareGPT is published), with the line each starts on.

    Raises: WorkloadError where the array stops being JSON.
    """
    position = text.index("[") + 1
    line, counted_to, ordinal = 1, 0, 0
    while True:
        position = _after_space(text, position)
        line += text.count("\n", counted_to, position)
        counted_to = position
        if ordinal == 0 and text.startswith("]", position):
            break
        ordinal += 1
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise reading.stop(
                line, "", f"must be valid JSON ({error})", text[position : position + 60]
            ) from error
        if isinstance(value, dict):
            yield Row(line, ordinal, value)
        else:
            reading.fault(line, "", "must be a JSON object", value)
        position = _after_space(text, position)
        if not text.startswith(",", position):
            break
        position += 1
    line += text.count("\n", counted_to, position)
    if not text.startswith("]", position):
        raise reading.stop(
            line, "", "must have ',' or ']' after an item", text[position : position + 60]
        )
    if text[position + 1 :].strip():
        raise reading.stop(line, "", "must end after the closing ']'", text[position + 1 :])


def csv_rows(text: str, reading: Reading) -> Iterator[Row]:
    """The rows below a header line; the separator is a comma, or a tab if the header has one.

    Raises: WorkloadError where quoting is broken or the header repeats a name.
    """
    header_line = text.split("\n", 1)[0]
    # The csv module's own limit is process-wide; it is put back as it was.
    previous_limit = csv.field_size_limit(max(reading.limits.characters + 1, 1024))
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter="\t" if "\t" in header_line else ",",
        strict=True,
    )
    end = 0
    try:
        header = [name.strip() for name in next(reader)]
        end = reader.line_num
        repeated = {name for name in header if header.count(name) > 1}
        if repeated:
            raise reading.stop(1, "header", "must not repeat a name", sorted(repeated))
        ordinal = 0
        for cells in reader:
            start, end = end + 1, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            ordinal += 1
            if len(cells) != len(header):
                reading.fault(
                    start,
                    "",
                    f"must have {len(header)} fields, as the header",
                    len(cells),
                    "put text that holds a separator or a line break into double quotes",
                )
                continue
            yield Row(start, ordinal, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise reading.stop(
            end + 1, "", f"must be well-formed CSV ({error})", hint="check the quotes"
        ) from error
    finally:
        csv.field_size_limit(previous_limit)


def parquet_rows(path: Path, reading: Reading) -> Iterator[Row]:
    """The rows of a Parquet file, batch by batch.

    Raises: WorkloadError when the file is damaged.
    """
    import pyarrow
    import pyarrow.parquet

    ordinal = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for fields in batch.to_pylist():
                    ordinal += 1
                    yield Row(None, ordinal, fields)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        cause = str(error).partition("\n")[0]
        raise reading.stop(None, "", f"must be a sound Parquet file ({cause})") from error


def text_rows(text: str) -> Iterator[Row]:
    """Every line that is not blank is one prompt."""
    ordinal = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            ordinal += 1
            yield Row(number, ordinal, {"prompt": line.strip()})


def json_cell(value: Any) -> Any:
    """A CSV cell that holds a JSON array, decoded; anything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position
